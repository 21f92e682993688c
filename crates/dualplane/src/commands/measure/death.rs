//! What a server died of: triage over what is left of it.

use std::path::Path;
use std::time::Duration;

use dualplane_core::evidence::{RawFile, UNIT_LABEL};
use dualplane_gate::document::Restart;
use dualplane_measure::Known;
use dualplane_measure::server::{KERNEL_LOG, Server, remains};
use dualplane_report as report;
use jiff::Timestamp;
use serde_json::json;

use super::Bench;
use crate::commands::Failure;
use crate::own_knowledge;

/// The kernel writes a record of a kill in pieces, and a parent notices later.
const SETTLE: Duration = Duration::from_secs(2);
/// For the server to end once a part of it is gone.
const END: Duration = Duration::from_secs(20);

pub(super) fn judge(bench: &mut Bench<'_>) -> Result<Restart, Failure> {
    let at = Timestamp::now();
    let exit_code = bench.server.as_mut().and_then(|s: &mut Server| s.exit_code(END));
    let told = std::time::Instant::now();
    while told.elapsed() < SETTLE {
        std::thread::park_timeout(SETTLE);
    }
    let knowledge = own_knowledge::load(bench.args.knowledge.as_deref())?;
    let left = remains(bench.log.as_deref(), Path::new("/dev/kmsg"), bench.boot_us);
    let who = who(&bench.reads.known(), at);
    // Of a server that ended before anything was read of it, or that is seen through a namespace, any record would be taken
    // for its own.
    let kept = |name: &str| name != KERNEL_LOG || !who.is_empty();
    let mut files: Vec<RawFile> = left
        .files
        .into_iter()
        .filter(|(n, _)| kept(n))
        .map(|(name, bytes)| RawFile::new(name, bytes))
        .collect();
    files.extend(who);
    let mut restart = Restart { at: Some(at.to_string()), exit_code, ..Restart::default() };
    let mut reports = report::triage_all("server", files, Vec::new(), &knowledge);
    if let Some(first) = reports.first_mut() {
        report::mask(first, &knowledge);
        let v = &first.verdict;
        restart.class = Some(v.class.as_str().to_owned());
        restart.plane = Some(v.class.plane().as_str().to_owned());
        restart.trigger = v.trigger.as_ref().map(|t| t.text.clone());
    }
    Ok(restart)
}

/// Who died, in the forms in which the agent records it, so that triage tells the kernel's lines about the server from those
/// about its neighbours. A group that it shares with us says nothing: its processes do.
fn who(known: &Known, at: Timestamp) -> Vec<RawFile> {
    if !known.of_machine {
        return Vec::new();
    }
    let mut out = Vec::new();
    if let Some(group) = known.group.as_deref().map(|g| g.trim_matches('/')).filter(|g| !g.is_empty()) {
        let unit = group.rsplit('/').next().unwrap_or(group);
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": unit, "namespace": "", "uid": "", "labels": {UNIT_LABEL: unit}},
            "spec": {"containers": [{"name": group}]},
            "status": {"containerStatuses": [{"name": group}]},
        });
        let manifest = json!({
            "schema": "dualplane.bundle/v1", "died_at": at.to_string(),
            "incident": {"kind": "end", "container": group, "container_id": ""},
        });
        out.push(RawFile::new("pod.json", pod.to_string()));
        out.push(RawFile::new("manifest.json", manifest.to_string()));
    }
    if !known.pids.is_empty() {
        let list: Vec<_> = known.pids.iter().map(|p| json!({"pid": p, "name": "server"})).collect();
        let processes = json!({"processes": list, "left_out": u32::from(known.more)});
        out.push(RawFile::new("processes.json", processes.to_string()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use dualplane_base::Class;
    use proptest::prelude::*;

    /// A record of a kill as `remains` writes it.
    fn record(us: u64, group: &str, limit_of: &str, pid: u32) -> String {
        let at = format!("[{:5}.{:06}]", us / 1_000_000, us % 1_000_000);
        format!(
            "{at} python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n\
             {at} memory: usage 49152kB, limit 49152kB, failcnt 32\n\
             {at} oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg={limit_of},task_memcg={group},task=python3,pid={pid},uid=0\n\
             {at} Memory cgroup out of memory: Killed process {pid} (python3) total-vm:51748kB, anon-rss:48896kB, file-rss:1544kB, shmem-rss:0kB, UID:0 pgtables:136kB oom_score_adj:0\n"
        )
    }

    const NEIGHBOURS: [&str; 5] = [
        "/neighbour",
        "/measured2",
        "/",
        "/docker/4f2d6c0c3f0e4e2f0a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091",
        "/kubepods/burstable/pod64dd15af-e06e-4c22-bf81-31f9e0cae991/1bf0acb9a2e3ee38724e67432929fec67f8dd3c1add016ae92b08d6736189754",
    ];

    fn judged(known: &Known, log: &str, kernel: &str) -> (Class, Option<String>) {
        let knowledge = own_knowledge::load(None).unwrap();
        let mut files = who(known, Timestamp::UNIX_EPOCH);
        for (name, text) in [("previous.log", log), ("kernel.log", kernel)] {
            if !text.is_empty() {
                files.push(RawFile::new(name, text.to_owned()));
            }
        }
        let reports = report::triage_all("server", files, Vec::new(), &knowledge);
        let v = &reports.first().unwrap().verdict;
        (v.class, v.trigger.as_ref().map(|t| t.text.clone()))
    }

    const LOG: &str = "INFO serving on port 8000\nINFO a request\n";

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Deaths of neighbours, before and after it, however many: the verdict is that of the server's own record, and none
        /// where it has none. With a group of its own, and with its processes alone.
        #[test]
        fn deaths_of_neighbours_are_not_the_servers(
            before in proptest::collection::vec((0..5_usize, 5_000..6_000_u32), 0..4),
            after in proptest::collection::vec((0..5_usize, 6_000..7_000_u32), 0..4),
            own in proptest::option::of(100..103_u32),
            grouped: bool,
        ) {
            let group = grouped.then(|| "/serving/measured".to_owned());
            let known = Known { group, pids: [100, 101, 102].into(), more: false, of_machine: true };
            let mut at = 100_000_000;
            let mut next = |group: &str, pid| { at += 3_000_000; record(at, group, group, pid) };
            let mut kernel = String::new();
            for (n, pid) in &before { kernel += &next(NEIGHBOURS[*n], *pid); }
            if let Some(pid) = own { kernel += &next("/serving/measured", pid); }
            for (n, pid) in &after { kernel += &next(NEIGHBOURS[*n], *pid); }
            let (class, trigger) = judged(&known, LOG, &kernel);
            match own {
                Some(_) => {
                    prop_assert_eq!(class, Class::HostOomKilled, "{}", kernel);
                    let at = 100 + 3 * (before.len() as u64 + 1);
                    prop_assert!(trigger.clone().unwrap().contains(&format!("{at}.000000")), "{:?}", trigger);
                }
                None => prop_assert_eq!(class, Class::Unknown, "{}", kernel),
            }
        }
    }

    #[test]
    fn of_whom_nothing_is_known_has_no_record() {
        let known = |group: Option<&str>, pids: &[u32], of_machine| Known {
            group: group.map(str::to_owned),
            pids: pids.iter().copied().collect(),
            more: false,
            of_machine,
        };
        let tells_apart = |k: &Known| !who(k, Timestamp::UNIX_EPOCH).is_empty();
        assert!(!tells_apart(&known(None, &[], true)) && !tells_apart(&known(Some("/"), &[], true)));
        assert!(tells_apart(&known(Some("/a"), &[], true)) && tells_apart(&known(None, &[7], true)));
        assert!(!tells_apart(&known(Some("/a"), &[7], false)), "other names than the kernel's");
    }

    #[test]
    fn a_server_that_a_limit_above_it_kills_is_killed() {
        let known = Known { group: Some("/pod/a".into()), pids: [7].into(), more: false, of_machine: true };
        let own = record(5_000_000, "/pod/a", "/pod", 7);
        assert_eq!(judged(&known, LOG, &own).0, Class::HostOomKilled);
        // Its neighbour below the same limit is another.
        let other = record(5_000_000, "/pod/b", "/pod", 8);
        assert_eq!(judged(&known, LOG, &other).0, Class::Unknown);
    }

    #[test]
    fn where_nothing_tells_them_apart_no_kill_is_denied() {
        let known = Known { group: Some("/a".into()), pids: [7].into(), more: false, of_machine: false };
        assert_eq!(
            judged(&known, LOG, &record(5_000_000, "/docker/x/a", "/docker/x/a", 4_711)).0,
            Class::HostOomKilled
        );
        let crowded = Known { group: None, pids: [7].into(), more: true, of_machine: true };
        assert_eq!(judged(&crowded, LOG, &record(5_000_000, "/", "/", 4_711)).0, Class::HostOomKilled);
    }
}
