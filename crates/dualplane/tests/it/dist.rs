//! What is published agrees with what installs it: targets, manifests, the unit, the workflow, `install.sh`.
//! `dist/run` itself builds for minutes; `.ci/run` runs it for one target.

use std::collections::BTreeSet;
use std::process::Command;

use crate::deploy::documents;
use crate::fake_api::{FakeApi, Reply};
use crate::harness::{root, run, stdout};

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// Names and Rust's targets of `dist/targets`.
fn targets() -> Vec<(String, String)> {
    let text = read("dist/targets");
    let rows = text.lines().filter(|l| !l.starts_with('#') && !l.trim().is_empty());
    let words = |l: &str| l.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    rows.map(words).map(|w| (w[0].clone(), w[1].clone())).collect()
}

#[test]
fn who_installs_finds_an_archive_that_is_made() {
    let made: BTreeSet<String> = targets().into_iter().map(|t| t.0).collect();
    assert!(made.len() >= 7);
    let krew = documents("deploy/krew/dualplane.yaml").remove(0);
    for platform in krew["spec"]["platforms"].as_array().unwrap() {
        let file = platform["uri"].as_str().unwrap().rsplit('/').next().unwrap();
        let name = file.trim_start_matches("dualplane-v").split_once('-').unwrap().1;
        let name = name.trim_end_matches(".tar.gz").trim_end_matches(".zip");
        assert!(made.contains(name), "krew loads {file}, and dist/targets has no {name}");
    }
    // `install.sh` puts its names together of these.
    for os in ["linux", "darwin"] {
        for arch in ["amd64", "arm64"] {
            assert!(made.contains(&format!("{os}-{arch}")), "install.sh loads {os}-{arch}");
        }
    }
    // Each target has a tag of wheels.
    let wheels = read("dist/lib/wheels.sh");
    for name in &made {
        assert!(wheels.contains(&format!("    {name}) echo ")), "no wheel for {name}");
    }
}

#[test]
fn the_workflow_calls_steps_that_exist() {
    let script = read("dist/run");
    let steps = script.lines().find(|l| l.starts_with("binaries | check")).unwrap();
    let steps: BTreeSet<&str> =
        steps.split(')').next().unwrap().split('|').map(str::trim).chain(["all"]).collect();
    let workflow = read(".github/workflows/release.yml");
    let mut called = 0;
    for word in workflow.split("dist/run ").skip(1).filter_map(|w| w.split_whitespace().next()) {
        if word != "\"$step\";" {
            assert!(steps.contains(word), "dist/run {word}");
            called += 1;
        }
    }
    let all = workflow.split("for step in ").nth(1).unwrap().split(';').next().unwrap();
    called += all.split_whitespace().inspect(|s| assert!(steps.contains(s), "dist/run {s}")).count();
    assert!(called >= 7, "{called}");
    for step in steps.iter().filter(|s| **s != "all") {
        let made = std::fs::read_dir(root().join("dist/lib")).unwrap();
        let defined = |e: std::io::Result<std::fs::DirEntry>| {
            std::fs::read_to_string(e.unwrap().path()).unwrap().contains(&format!("\n{step}() {{"))
        };
        assert!(made.into_iter().any(defined), "no function {step} in dist/lib");
    }
}

/// The agent takes the options that the unit gives it, and packages carry the unit.
#[test]
fn the_unit_starts_the_agent_with_options_that_it_has() {
    let unit = read("deploy/systemd/dualplane-agent.service");
    let line = unit.lines().find(|l| l.starts_with("ExecStart=")).unwrap();
    let help = stdout(&run(&["agent", "--help"]));
    let flags: Vec<&str> = unit.split_whitespace().filter_map(|w| w.split("--").nth(1)).collect();
    assert!(line.starts_with("ExecStart=/usr/bin/dualplane agent --state=/var/lib/dualplane "));
    for flag in flags {
        let name = flag.split('=').next().unwrap();
        assert!(help.contains(&format!("--{name} ")), "the agent has no --{name}");
    }
    let manifest = read("crates/dualplane/Cargo.toml");
    assert!(manifest.contains("\"deploy/systemd/dualplane-agent.service\""));
    // It reads the kernel's messages and other processes, and no more than that.
    let caps = unit.lines().find(|l| l.starts_with("CapabilityBoundingSet=")).unwrap();
    assert_eq!(caps, "CapabilityBoundingSet=CAP_SYSLOG CAP_SYS_PTRACE CAP_DAC_READ_SEARCH");
}

fn sh(script: &str) -> String {
    let o = Command::new("sh").args(["-ec", script]).output().unwrap();
    assert!(o.status.success(), "{script}: {}", String::from_utf8_lossy(&o.stderr));
    String::from_utf8(o.stdout).unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn install_sh_installs_what_has_its_sum_and_nothing_else() {
    let has = |tool: &str| {
        Command::new("sh").args(["-c", &format!("command -v {tool}")]).output().unwrap().status.success()
    };
    if !(has("curl") || has("wget")) {
        eprintln!("SKIPPED install.sh: neither curl nor wget");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let release = dir.path().join("v9.9.9");
    std::fs::create_dir(&release).unwrap();
    // A program of its own, so that a day's build need not be packed.
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        _ => return,
    };
    let file = format!("dualplane-v9.9.9-linux-{arch}.tar.gz");
    let r = release.display();
    sh(&format!(
        "cd {r}; printf '#!/bin/sh\\necho dualplane 9.9.9\\n' > dualplane; chmod +x dualplane; \
         tar -czf {file} dualplane; sha256sum {file} > SHA256SUMS"
    ));
    let folder = dir.path().to_owned();
    let server = FakeApi::new(move |asked| {
        let path = asked.strip_prefix("GET /")?;
        std::fs::read(folder.join(path)).ok().map(Reply::text)
    });
    let install = |to: &str, version: &str| {
        Command::new("sh")
            .arg(root().join("dist/install.sh"))
            .arg(dir.path().join(to))
            .env("DUALPLANE_RELEASES", &server.server)
            .env("DUALPLANE_VERSION", version)
            .output()
            .unwrap()
    };
    // Only the static program was published: it is taken also where glibc is.
    let o = install("bin", "9.9.9");
    assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
    assert_eq!(sh(&format!("{}/bin/dualplane --version", dir.path().display())).trim(), "dualplane 9.9.9");
    // Where the smaller archive can be unpacked, it is loaded: here the larger one would not be.
    if has("xz") {
        let small = file.replace(".tar.gz", ".tar.xz");
        sh(&format!(
            "cd {r}; printf '#!/bin/sh\\necho dualplane small\\n' > dualplane; tar -cf - dualplane | xz > {small}; \
             sha256sum {file} {small} > SHA256SUMS"
        ));
        assert!(install("small", "9.9.9").status.success());
        assert_eq!(sh(&format!("{}/small/dualplane", dir.path().display())).trim(), "dualplane small");
        sh(&format!("cd {r}; rm {small}; sha256sum {file} > SHA256SUMS"));
    }
    // A version that is not there, and a file that is not what the sums say: words, and nothing installed.
    let refused = |to: &str, version: &str, words: &str| {
        let o = install(to, version);
        let said = String::from_utf8_lossy(&o.stderr).into_owned();
        assert!(!o.status.success() && said.contains(words), "{said}");
        assert!(!dir.path().join(to).join("dualplane").exists());
    };
    refused("none", "1.2.3", "cannot load");
    sh(&format!("printf x >> {r}/{file}"));
    refused("other", "9.9.9", "nothing was installed");
    sh(&format!("printf '' > {r}/SHA256SUMS"));
    refused("empty", "9.9.9", "has no dualplane-v9.9.9-linux");
}
