//! `dualplane-server serve --watch`: what dies in the cluster is there, without an agent, and as `triage` judges it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::fleet;
use crate::harness::{Namespace, binary, create, run, server, until, until_within};

/// For some fifty captures, four at a time, beside another test.
const PATIENCE: Duration = Duration::from_secs(180);

/// More than die while it looks: containers of other tests crash on, and newer deaths come first.
const ALL: &str = "5000";

/// A server that ends with the test.
struct Watching {
    child: Child,
    url: String,
    _data: tempfile::TempDir,
}

impl Watching {
    fn start() -> Self {
        let program = binary().with_file_name("dualplane-server");
        assert!(
            program.exists(),
            "{} is not built: cargo build --release -p dualplane-server",
            program.display()
        );
        let data = tempfile::tempdir().unwrap();
        let mut child = Command::new(program)
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--watch",
                "--cluster",
                "e2e",
                "--watch-agents-first",
                "0",
                "--data",
            ])
            .arg(data.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = said
            .find_map(|l| l.unwrap().split(' ').find(|w| w.starts_with("http")).map(ToOwned::to_owned))
            .unwrap();
        // Nobody may wait for a pipe that is full.
        std::thread::spawn(move || said.for_each(drop));
        Self { child, url, _data: data }
    }

    /// All deaths, by namespace, pod and class.
    fn deaths(&self) -> Vec<(String, String)> {
        let asked = [
            "incidents",
            "ls",
            "--server",
            &self.url,
            "--filter",
            "each=true",
            "--filter",
            "cluster=e2e",
            "--limit",
            ALL,
            "-o",
            "json",
        ];
        let list = run(&asked).ok().json();
        assert!(list["next"].is_null(), "more than {ALL} deaths");
        let of = |i: &Value, key: &str| i[key].as_str().unwrap().to_owned();
        let items = list["items"].as_array().unwrap();
        items.iter().map(|i| (format!("{}/{}", of(i, "namespace"), of(i, "pod")), of(i, "class"))).collect()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn who_watches_keeps_each_death_as_triage_judges_it() {
    let _namespace = Namespace::fresh("watched");
    let s = Watching::start();
    // A model server by its command.
    let pod = server("oom", "watched", "vllm serve /m 2>/dev/null || tail /dev/zero");
    create(&pod.replace("namespace: serving", "namespace: watched"));
    let of = |pod: &str| {
        s.deaths().into_iter().filter(|(p, _)| p == pod).map(|(_, class)| class).collect::<Vec<_>>()
    };
    // The second one follows at once, before the first is looked at; each is one.
    let killed = until("two kills are kept", || Some(of("watched/oom")).filter(|all| all.len() > 1));
    assert!(killed.iter().all(|class| class == "host_oom_killed"), "{killed:?}");
    let Some(wanted) = fleet::wanted() else { return };
    let wanted = wanted.as_object().unwrap();
    let mine = |all: Vec<(String, String)>| {
        all.into_iter().filter(|(pod, _)| wanted.contains_key(pod)).collect::<Vec<_>>()
    };
    // The others are no model servers, or nothing of them died. On a busy machine a capture takes seconds.
    let mut kept = 0;
    let all = until_within(PATIENCE, "the fleet's deaths are kept", || {
        let all = mine(s.deaths());
        if all.len() != kept {
            kept = all.len();
            eprintln!("{kept} deaths of the fleet are kept");
        }
        Some(all).filter(|all| all.len() >= 40)
    });
    let wrong: Vec<String> = all
        .iter()
        .filter(|(pod, is)| fleet::class(&wanted[pod], is) != *is)
        .map(|(pod, is)| format!("{pod}: {is}, wanted {}", wanted[pod]))
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
    eprintln!("{} deaths of the fleet were kept", all.len());
}
