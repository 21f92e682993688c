//! Secrets are read from files or variables, and are never an argument.

use crate::harness::{code, dir, dualplane, stderr};

#[test]
fn a_file_with_a_token_is_read_or_said_to_be_unreadable() {
    let d = dir(&[("empty", b" \n"), ("two", b"one\ntwo\n")]);
    let asked = |file: &str| {
        let o = dualplane()
            .args(["capture", "--url", "http://127.0.0.1:1"])
            .env("DUALPLANE_ENGINE_TOKEN_FILE", d.path().join(file))
            .env("DUALPLANE_ENGINE_TOKEN", "of the variable")
            .output()
            .unwrap();
        (code(&o), stderr(&o))
    };
    for (file, why) in [("absent", "No such file"), ("empty", "is empty"), ("two", "one line")] {
        let (code, said) = asked(file);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("DUALPLANE_ENGINE_TOKEN_FILE") && said.contains(why), "{said}");
        assert!(!said.contains("of the variable"), "{said}");
    }
}

#[test]
fn a_password_in_an_address_is_refused_before_anything_is_asked() {
    for (flag, file) in
        [("--prometheus", "DUALPLANE_PROMETHEUS_TOKEN_FILE"), ("--loki", "DUALPLANE_LOKI_TOKEN_FILE")]
    {
        let o = dualplane()
            .args(["triage", "pod/x", flag, "http://user:geheim@127.0.0.1:1"])
            .env("KUBECONFIG", "/dev/null")
            .output()
            .unwrap();
        let said = stderr(&o);
        assert_eq!(code(&o), 2, "{said}");
        assert!(said.contains(flag) && said.contains(file) && !said.contains("geheim"), "{said}");
    }
}
