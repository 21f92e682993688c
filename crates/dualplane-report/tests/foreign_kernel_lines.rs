//! Whose evidence it is: what the kernel says beside an incident of somebody else changes nothing of its report, for every
//! kind of line that names somebody.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs,
    clippy::disallowed_methods,
    clippy::disallowed_types
)]

mod common;

use common::{copies, root, small_incidents, triage};
use dualplane_core::evidence::RawFile;
use dualplane_report as report;
use serde_json::{Value, json};

/// A pod of the same node that nobody asked about, its container, and a process of it.
const UID: &str = "0e1d2c3b-1111-4222-8333-444455556666";
const PID: u64 = 3_999_991;

/// The whole report without the numbers of lines.
fn told(files: Vec<RawFile>) -> String {
    fn without(v: &mut Value) {
        match v {
            Value::Object(map) => {
                map.remove("line");
                map.values_mut().for_each(without);
            }
            Value::Array(all) => all.iter_mut().for_each(without),
            Value::String(s) => *s = without_numbers(s),
            _ => {}
        }
    }
    let mut value: Value = serde_json::from_str(&report::json::render(&triage(files)).unwrap()).unwrap();
    without(&mut value);
    serde_json::to_string_pretty(&value).unwrap()
}

/// `kernel.log:12` without its number.
fn without_numbers(text: &str) -> String {
    let mut parts = text.split(".log:");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(".log:");
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    // How long the log is that says nothing.
    match out.find(" kernel log line") {
        Some(i) => format!("some{}", out[i..].replacen("lines", "line", 1)),
        None => out,
    }
}

fn path() -> String {
    format!("/kubepods/burstable/pod{UID}/{}", "f0".repeat(32))
}

/// Lines that name the foreign pod or its container.
fn of_a_foreign_cgroup() -> Vec<(String, Vec<String>)> {
    let path = path();
    let record = |memcg: &str, generation: &str| {
        let mut lines = vec![
            "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=903".to_owned(),
        ];
        if generation == "4" {
            lines.push(format!("Task in {path} killed as a result of limit of {memcg}"));
        }
        lines.push("memory: usage 67108864kB, limit 67108864kB, failcnt 70".to_owned());
        if generation != "4" {
            lines.push(format!("oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg={memcg},task_memcg={path},task=python3,pid={PID},uid=0"));
        }
        lines.push(format!("Memory cgroup out of memory: Killed process {PID} (python3) total-vm:99999999kB, anon-rss:67000000kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:133000kB oom_score_adj:903"));
        if generation == "group" {
            lines.push(format!("Tasks in {path} are going to be killed due to memory.oom.group set"));
            lines.push(format!("Memory cgroup out of memory: Killed process {} (pt_data) total-vm:9kB, anon-rss:9kB, file-rss:0kB, shmem-rss:0kB", PID + 1));
        }
        lines
    };
    let pod = format!("/kubepods/burstable/pod{UID}");
    let global = vec![
        "python3 invoked oom-killer: gfp_mask=0x140dca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=1000"
            .to_owned(),
        format!(
            "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=x,mems_allowed=0,global_oom,task_memcg={path},task=python3,pid={PID},uid=0"
        ),
        format!(
            "Out of memory: Killed process {PID} (python3) total-vm:99999999kB, anon-rss:67000000kB, file-rss:0kB, shmem-rss:0kB"
        ),
    ];
    vec![
        ("record".into(), record(&path, "5")),
        ("record of the pod's limit".into(), record(&pod, "5")),
        ("record of all pods' limit".into(), record("/kubepods", "5")),
        ("record of an old kernel".into(), record(&path, "4")),
        ("record of a group".into(), record(&path, "group")),
        ("record of the machine".into(), global),
        ("pids".into(), vec![format!("cgroup: fork rejected by pids controller in {path}")]),
        (
            "oomd".into(),
            vec![format!(
                "systemd-oomd[612]: Killed {path} due to memory used (65234567168) / total (67108864000) and swap used (8300000000) / total (8589934592) being more than 90.00%"
            )],
        ),
        (
            "talos".into(),
            vec![format!(
                "[talos] Sending SIGKILL to cgroup {{\"component\": \"controller-runtime\", \"controller\": \"runtime.OOMController\", \"cgroup\": \"/sys/fs/cgroup{pod}\"}}"
            )],
        ),
        (
            "containerd".into(),
            vec![format!(
                "containerd[812]: time=\"2026-07-03T22:40:06Z\" level=info msg=\"TaskOOM event &TaskOOM{{container_id:\"{}\"}}\"",
                "f0".repeat(32)
            )],
        ),
    ]
}

/// Lines of every signature of the kernel that names a process, and Xids that only their process suffers of.
fn of_a_foreign_process() -> Vec<(String, Vec<String>)> {
    let text = std::fs::read_to_string(root().join("knowledge/kernel.toml")).unwrap();
    let table: toml::Table = toml::from_str(&text).unwrap();
    let mut out = Vec::new();
    for s in table["signature"].as_array().unwrap() {
        let named = s.get("pattern").and_then(|p| p.as_str()).is_some_and(|p| p.contains("(?P<pid>"));
        // A fault of the whole driver names whoever met it.
        if !named || s["id"].as_str() == Some("kernel.uvm_global_fatal") {
            continue;
        }
        for example in s["examples"].as_array().unwrap().iter().filter_map(|e| e.as_str()) {
            // What the log puts before a line comes with the place where it is put.
            let message =
                example.split_once("] ").filter(|_| example.starts_with('[')).map_or(example, |(_, m)| m);
            let with_pid = with_pid(message);
            if with_pid != message {
                out.push((s["id"].as_str().unwrap().to_owned(), vec![with_pid]));
            }
        }
    }
    assert!(out.len() >= 15, "{out:?}");
    for code in [8, 13, 31, 43] {
        let line = format!("NVRM: Xid (PCI:0000:4a:00): {code}, pid={PID}, name=python3, Ch 00000001");
        out.push((format!("xid {code}"), vec![line]));
    }
    out
}

/// The example with the foreign process's pid in place of its own.
fn with_pid(message: &str) -> String {
    for (before, after) in [
        ("(pid ", ")"),
        (" pid=", " "),
        ("pid ", " "),
        ("pid: ", ","),
        ("[", "]: segfault"),
        ("process ", " uid"),
        ("[", "] trap"),
        ("[", "] general"),
        ("INFO: task jfsmount:", " "),
        ("INFO: task python3:", " "),
        ("[pt_data_pin:", "]"),
        ("python3 (", ")"),
        ("cellsrv:", " "),
        ("python3:", " "),
        ("uffd-unit-tests:", " "),
        ("in python [", "]"),
    ] {
        let mut from = 0;
        while let Some(i) = message[from..].find(before).map(|i| from + i + before.len()) {
            let digits = message[i..].bytes().take_while(u8::is_ascii_digit).count();
            if digits > 0 && message[i + digits..].starts_with(after) {
                return format!("{}{PID}{}", &message[..i], &message[i + digits..]);
            }
            from = i;
        }
    }
    message.to_owned()
}

fn is_kernel_log(f: &RawFile) -> bool {
    let name = f.name.rsplit('/').next().unwrap();
    ["kernel", "dmesg", "kmsg", "kern.log"].iter().any(|k| name.contains(k)) && !name.ends_with(".json")
}

/// What stands before the message of a kernel line.
fn prefix(line: &str) -> &str {
    for end in [" kernel: [", " kernel: "] {
        if let Some(i) = line.find(end) {
            let at = i + end.len();
            return match end.ends_with('[') {
                true => line[at..].find("] ").map_or("", |j| &line[..at + j + 2]),
                false => &line[..at],
            };
        }
    }
    if let Some(i) =
        line.find("] ").filter(|_| line.starts_with('[') || line.starts_with('<') || line.starts_with("kern"))
    {
        return &line[..i + 2];
    }
    line.find(";")
        .filter(|i| line[..*i].bytes().all(|b| b.is_ascii_digit() || b",-c".contains(&b)))
        .map_or("", |i| &line[..=i])
}

/// The kernel log with the lines put in before, in the middle and behind, each as its neighbour is written.
fn beside(log: &str, lines: &[String]) -> String {
    let own: Vec<&str> = log.lines().collect();
    // The killer holds a lock while it writes a record: another does not stand inside.
    let opens = |i: &usize| own[*i].contains("invoked oom-killer");
    let behind = |i: &usize| !own[..*i].iter().any(|l| l.contains("invoked oom-killer"));
    let middle = (own.len() / 2..own.len()).find(|i| *i > 0 && (opens(i) || behind(i))).unwrap_or(own.len());
    let mut out = Vec::new();
    for i in 0..=own.len() {
        if i == 0 || i == middle || i == own.len() {
            let neighbour = own.get(i).or(own.last()).copied().unwrap_or_default();
            out.extend(lines.iter().map(|l| format!("{}{l}", prefix(neighbour))));
        }
        out.extend(own.get(i).map(|l| (*l).to_owned()));
    }
    out.join("\n") + "\n"
}

struct Known {
    name: String,
    files: Vec<RawFile>,
    /// Which of them is the kernel log.
    at: usize,
    /// The ids of its containers are known.
    ids: bool,
}

/// Incidents with a pod whose UID is known, a kernel log beside them, and the processes of the container.
fn known() -> Vec<Known> {
    let mut out = Vec::new();
    for (name, mut files) in small_incidents() {
        let reports = triage(copies(&files));
        let [one] = reports.as_slice() else { continue };
        if one.verdict.subject.uid.as_ref().is_none_or(|u| u.len() != 36) {
            continue;
        }
        if !files.iter().any(is_kernel_log) {
            files.push(RawFile::new("zz-kernel.log", "[    1.000000] Linux version 6.8.0-60-generic\n"));
        }
        let at = files.iter().position(is_kernel_log).unwrap();
        let mut pids: Vec<u64> = files
            .iter()
            .filter(|f| is_kernel_log(f))
            .flat_map(|f| {
                String::from_utf8_lossy(&f.bytes)
                    .split(|c: char| !c.is_ascii_digit())
                    .filter_map(|w| w.parse().ok())
                    .collect::<Vec<_>>()
            })
            .filter(|n| (2..PID).contains(n))
            .collect();
        pids.sort_unstable();
        pids.dedup();
        pids.truncate(4000);
        pids.push(PID - 7);
        let list: Vec<Value> = pids.iter().map(|p| json!({"pid": p, "name": "python3"})).collect();
        files.retain(|f| f.name != "processes.json");
        files.push(RawFile::new("processes.json", json!({"processes": list, "left_out": 0}).to_string()));
        let at = files.iter().position(is_kernel_log).unwrap_or(at);
        let ids = one.bundle.pods.iter().flat_map(|p| &p.containers).filter_map(|c| c.status.as_ref());
        out.push(Known { name, files, at, ids: ids.flat_map(|s| s.instance_ids()).next().is_some() });
    }
    assert!(out.len() > 60, "{}", out.len());
    out
}

#[test]
fn what_the_kernel_says_of_a_foreign_pod_changes_nothing() {
    let foreign: Vec<(String, Vec<String>)> =
        of_a_foreign_cgroup().into_iter().chain(of_a_foreign_process()).collect();
    let mut wrong = Vec::new();
    for (i, Known { name, files, at, ids }) in known().iter().enumerate() {
        // A line that names only a container says nothing where no id is known.
        let foreign: Vec<_> = foreign.iter().filter(|(what, _)| *ids || what != "containerd").collect();
        let before = told(copies(files));
        let log = String::from_utf8_lossy(&files[*at].bytes).into_owned();
        let put = |lines: &[String]| {
            let mut more = copies(files);
            more[*at] = RawFile::new(files[*at].name.clone(), beside(&log, lines));
            told(more)
        };
        // All at once, and one of them by itself: what is wrong is then named.
        let all: Vec<String> = foreign.iter().flat_map(|(_, l)| l.clone()).collect();
        let (what, one) = foreign[i % foreign.len()];
        let mut check = |what: &str, after: String| {
            if after != before {
                let differs = before.lines().zip(after.lines()).find(|(a, b)| a != b);
                wrong.push(format!("{name} with {what}: {differs:?}"));
            }
        };
        check(what, put(one));
        let together = put(&all);
        if together != before {
            for (what, lines) in foreign {
                check(what, put(lines));
            }
            check("all", together);
        }
    }
    assert!(wrong.is_empty(), "{}: {wrong:#?}", wrong.len());
}

/// The kernel prints the head of a record under a rate limit, and the victim always: in a burst of kills nothing says in
/// which cgroup they were. The runtime counts the kills at a cgroup's limit, so the status of whom they are of says it.
#[test]
fn a_victim_without_a_cgroup_is_nobodys_whose_status_tells_of_another_end() {
    let torn = vec![format!(
        "Memory cgroup out of memory: Killed process {PID} (python3) total-vm:99999kB, anon-rss:996kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:133kB oom_score_adj:903"
    )];
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for (name, mut files) in small_incidents() {
        let reports = triage(copies(&files));
        let [one] = reports.as_slice() else { continue };
        if one.verdict.subject.uid.as_ref().is_none_or(|u| u.len() != 36) {
            continue;
        }
        let pods = &one.bundle.pods;
        let statuses = || pods.iter().flat_map(|p| &p.containers).filter_map(|c| c.status.as_ref());
        let ends: Vec<_> = statuses().flat_map(|s| s.terminations()).collect();
        let open = ends.iter().any(|t| t.exit_code.is_none() || t.reason == "OOMKilled");
        if ends.is_empty() || open {
            continue;
        }
        seen += 1;
        if !files.iter().any(is_kernel_log) {
            files.push(RawFile::new("zz-kernel.log", "[    1.000000] Linux version 6.8.0-60-generic\n"));
        }
        let at = files.iter().position(is_kernel_log).unwrap();
        let before = told(copies(&files));
        let log = String::from_utf8_lossy(&files[at].bytes).into_owned();
        files[at] = RawFile::new(files[at].name.clone(), beside(&log, &torn));
        let after = told(files);
        if after != before {
            let differs = before.lines().zip(after.lines()).find(|(a, b)| a != b);
            wrong.push(format!("{name}: {differs:?}"));
        }
    }
    assert!(seen > 60, "{seen}");
    assert!(wrong.is_empty(), "{}: {wrong:#?}", wrong.len());
}
