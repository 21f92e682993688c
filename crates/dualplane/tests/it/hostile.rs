//! Bad input: a clear error or a recorded gap, never a panic, never an escape on the terminal.

use crate::harness::{class, code, dir, run, run_stdin, stderr, stdout, triage_files, triage_json};

fn no_panic(o: &std::process::Output) {
    let err = stderr(o);
    assert!(!err.contains("panicked"), "{err}");
    assert!(o.status.code().is_some(), "ended by a signal");
}

#[test]
fn a_missing_target_says_what_to_do() {
    let o = run(&["triage", "/no/such/place"]);
    no_panic(&o);
    assert_eq!(code(&o), 3);
    assert!(stderr(&o).contains("/no/such/place") && stderr(&o).contains("check the path"), "{}", stderr(&o));
}

#[test]
fn an_empty_folder_and_junk_are_no_evidence() {
    let empty = dir(&[]);
    let o = run(&["triage", empty.path().to_str().unwrap()]);
    assert_eq!(code(&o), 4);
    assert!(stderr(&o).contains("kubectl logs"), "{}", stderr(&o));
    let junk: Vec<u8> = (0..20_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let d = dir(&[("core", &junk)]);
    let o = run(&["triage", d.path().to_str().unwrap()]);
    no_panic(&o);
    assert_eq!(code(&o), 4, "{}", stdout(&o));
    assert!(stderr(&o).contains("binary"), "{}", stderr(&o));
}

#[test]
fn one_bad_file_is_a_gap_and_the_rest_is_used() {
    let v = triage_files(&[
        ("pod.json", "{\"kind\": \"Pod\", \"metadata\": {\"na"),
        ("events.yaml", "apiVersion: v1\nkind: EventList\nitems: [{"),
        (
            "previous.log",
            "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 3257.82 MiB on device 0: cudaMalloc failed: out of memory\n",
        ),
    ]);
    assert_eq!(class(&v), "cuda_oom_load");
    let gaps: Vec<&str> =
        v["missing"].as_array().unwrap().iter().map(|g| g["what"].as_str().unwrap()).collect();
    assert!(gaps.contains(&"pod.json") && gaps.contains(&"events.yaml"), "{gaps:?}");
}

#[cfg(unix)]
#[test]
fn an_unreadable_file_is_a_gap_and_a_link_is_not_followed() {
    use std::os::unix::fs::PermissionsExt;
    let d = dir(&[("previous.log", b"INFO fine\n"), ("secret.log", b"x\n")]);
    std::fs::set_permissions(d.path().join("secret.log"), std::fs::Permissions::from_mode(0o000)).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", d.path().join("link.log")).unwrap();
    std::os::unix::fs::symlink(d.path(), d.path().join("round")).unwrap();
    let v = triage_json(d.path());
    let text = v.to_string();
    assert!(text.contains("link.log") && text.contains("not followed"), "{text}");
    assert!(!text.contains("root:"), "a link led out of the target");
    // Root reads everything; anybody else gets the gap.
    if std::fs::read(d.path().join("secret.log")).is_err() {
        assert!(text.contains("secret.log") && text.contains("cannot be read"), "{text}");
    }
}

#[test]
fn terminal_escapes_never_reach_the_terminal() {
    let evil =
        "CUDA out of memory. Tried to allocate 1.00 GiB \u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m \u{202e}gpj\n";
    let d = dir(&[("previous.log", evil.as_bytes()), ("\u{1b}[31mevil.log", b"INFO x\n")]);
    for format in ["text", "markdown", "json"] {
        let o = run(&["triage", d.path().to_str().unwrap(), "-o", format, "-v"]);
        no_panic(&o);
        let out = stdout(&o);
        assert!(
            !out.contains('\u{1b}') && !out.contains('\u{7}') && !out.contains('\u{9b}'),
            "{format}: {out:?}"
        );
        if format != "json" {
            assert!(!out.contains('\u{202e}'), "{format}");
        }
    }
}

#[test]
fn markdown_and_html_in_logs_stay_text() {
    let evil = "RuntimeError: CUDA out of memory. Tried to allocate 1.00 GiB <script>alert(1)</script> ```\n# owned\n";
    let d = dir(&[("previous.log", evil.as_bytes())]);
    let out = stdout(&run(&["triage", d.path().to_str().unwrap(), "-o", "markdown"]));
    let in_fences: String = out.split("````").step_by(2).collect();
    assert!(!in_fences.contains("<script>"), "{out}");
}

#[test]
fn odd_bytes_long_lines_and_endless_structures() {
    let mut long = vec![b'a'; 8 << 20];
    long.extend_from_slice(b" CUDA out of memory. Tried to allocate 1.00 GiB\n");
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: &h [*g,*g,*g,*g,*g,*g,*g,*g,*g]\nkind: Pod\napiVersion: v1\n";
    let d = dir(&[
        ("long.log", &long),
        ("invalid.log", b"\xff\xfe\xfd INFO \xc3\x28 x\nCUDA error: out of memory \xff\n"),
        ("nul.log", b"INFO a\0b\nINFO c\n"),
        ("deep.json", deep.as_bytes()),
        ("bomb.yaml", bomb.as_bytes()),
        ("crlf.log", b"INFO x\r\nINFO y\r\n"),
        ("noend.log", b"INFO no line end"),
    ]);
    let o = run(&["triage", d.path().to_str().unwrap(), "-o", "json"]);
    no_panic(&o);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
}

#[test]
fn stdin_may_be_anything() {
    for input in [b"".as_slice(), b"\n\n\n", b"{", b"[", b"---", b"{}", b"null", b"\xff\xff\xff\xff"] {
        let o = run_stdin(&["triage", "-"], input);
        no_panic(&o);
        assert!([0, 4].contains(&code(&o)), "{input:?}: {}", code(&o));
    }
}

/// As people and tools save objects: more than one, or with something before them.
#[test]
fn objects_that_are_not_one_pristine_value_are_read() {
    let pod = "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"p\", \"namespace\": \"s\"}, \"spec\": {\"containers\": [{\"name\": \"server\", \"image\": \"vllm/vllm-openai:v0.11.2\", \"resources\": {\"limits\": {\"memory\": \"64Gi\"}}}]}, \"status\": {\"phase\": \"Running\", \"containerStatuses\": [{\"name\": \"server\", \"restartCount\": 1, \"lastState\": {\"terminated\": {\"exitCode\": 137, \"reason\": \"OOMKilled\"}}}]}}";
    let node = "{\"apiVersion\": \"v1\", \"kind\": \"Node\", \"metadata\": {\"name\": \"n\"}}";
    let indented = format!("{}\n{}", pod.replace(", ", ",\n  ").replace('{', "{\n "), node);
    let yaml = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n  containers:\n  - name: server\n    resources: {limits: {memory: 64Gi}}\nstatus:\n  containerStatuses:\n  - name: server\n    lastState: {terminated: {exitCode: 137, reason: OOMKilled}}\n";
    for (name, text) in [
        ("pod.json", format!("\u{feff}{pod}")),
        ("pod.json", format!("{pod}{node}")),
        ("pods.json", format!("{pod}\n{node}\n")),
        ("all.yaml", format!("{pod}\n---\n{node}\n")),
        ("pod.json", format!("# saved by support\n{pod}\n")),
        ("pod.json", format!("Warning: v1 Endpoints is deprecated in v1.33+\n{pod}\n")),
        ("pods.json", indented),
        ("pods.json", format!("{pod}\n{}", pod.get(..100).unwrap())),
        ("pod.yaml", format!("$ kubectl get pod x -o yaml\n{yaml}")),
        ("pod.txt", format!("$ kubectl get pod x -o yaml\n{yaml}")),
    ] {
        assert_eq!(class(&triage_files(&[(name, &text)])), "host_oom_killed", "{name}: {text}");
    }
}

#[test]
fn a_pod_that_cannot_be_read_is_a_gap() {
    let v = triage_files(&[("chat.txt", "look at this:\n  kind\nkind: Pod\nmetadata: [\nINFO fine\n")]);
    let gap = v["missing"].as_array().unwrap().iter().find(|g| g["what"] == "chat.txt").unwrap();
    assert!(gap["why"].as_str().unwrap().contains("mentions a pod"), "{gap}");
}

/// Root reads everything: the binary runs as nobody to meet what it may not read.
#[cfg(unix)]
#[test]
fn what_may_not_be_read_is_a_gap_and_the_rest_is_used() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let d = dir(&[("previous.log", b"INFO fine\n"), ("secret.log", b"x\n"), ("closed/current.log", b"x\n")]);
    let chmod = |path: &str, mode| {
        std::fs::set_permissions(d.path().join(path), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    chmod("", 0o755);
    chmod("secret.log", 0o000);
    chmod("closed", 0o000);
    let root = std::fs::metadata(d.path()).unwrap().uid() == 0;
    let binary = env!("CARGO_BIN_EXE_dualplane");
    let mut command = if root {
        // The build folder may be closed to others; a copy beside the evidence is not.
        let copy = tempfile::tempdir().unwrap();
        std::fs::set_permissions(copy.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let program = copy.keep().join("dualplane");
        std::fs::copy(binary, &program).unwrap();
        let mut c = std::process::Command::new("setpriv");
        c.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
        c
    } else {
        std::process::Command::new(binary)
    };
    let run = |c: &mut std::process::Command, target: &str| {
        c.args(["triage", "-o", "json"]).arg(d.path().join(target)).output()
    };
    let o = match run(&mut command, "") {
        Ok(o) if !root || code(&o) != 127 && !stderr(&o).contains("setpriv:") => o,
        other => {
            #[expect(clippy::print_stderr, reason = "a skipped test says why")]
            {
                eprintln!("skipped: cannot run as another user here ({other:?})");
            }
            chmod("closed", 0o755);
            return;
        }
    };
    if root {
        let program = std::path::PathBuf::from(command.get_args().nth(3).unwrap());
        std::fs::remove_dir_all(program.parent().unwrap()).unwrap();
    }
    chmod("closed", 0o755);
    no_panic(&o);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let v: serde_json::Value = serde_json::from_slice(&o.stdout).unwrap();
    assert_eq!(v["evidence"], serde_json::json!(["previous.log"]), "{v}");
    let gaps = v["missing"].to_string();
    assert!(gaps.contains("secret.log") && gaps.contains("closed") && gaps.contains("denied"), "{gaps}");
}

#[test]
fn what_is_given_twice_is_read_once() {
    let d = dir(&[("a.log", b"INFO fine\n"), ("sub/b.log", b"INFO fine too\n")]);
    let at = |p: &str| d.path().join(p).to_str().unwrap().to_owned();
    let o = run(&["triage", "-o", "json", &at("a.log"), &at("sub/../a.log")]);
    let v: serde_json::Value = serde_json::from_slice(&o.stdout).unwrap();
    assert_eq!(v["evidence"], serde_json::json!(["a.log"]), "{v}");
    assert!(v["missing"].to_string().contains("given twice"), "{v}");
    let o = run(&["triage", "-o", "json", &at("sub"), &at("./sub/")]);
    let v: serde_json::Value = serde_json::from_slice(&o.stdout).unwrap();
    assert_eq!(v["evidence"], serde_json::json!(["b.log"]), "{v}");
}
