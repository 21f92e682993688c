//! The kernel log of a node: of weeks and of all its pods. What is kept is its end, of that the lines that say something,
//! and in any case every record of the OOM killer that names one of the pods at hand.

use std::collections::HashSet;
use std::ops::Range;
use std::time::Duration;

use dualplane_core::sift::{self, Merge, Sifter};

use super::context::Context;
use crate::api::ApiError;

/// The last so many bytes.
pub(crate) const TAIL: usize = 4 << 20;
/// Kept whole up to here.
const WHOLE: usize = 256 << 10;
/// Of a longer one about so much, besides the pods' own records.
const KEPT_BYTES: usize = 512 << 10;
/// Records of one node's pods that are kept in any case, the last ones.
const OWN_RECORDS: usize = 64;
/// A record with the tasks of a large pod.
const MAX_RECORD: usize = 64 << 10;

/// Reads the end of the log, for all pods of the run on this node.
pub(super) async fn tail(cx: &Context<'_>, path: &str, time: Duration) -> Result<(Vec<u8>, u64), ApiError> {
    let log = cx.api.tail(path, TAIL, time).await?;
    let kept = match cx.sifter.filter(|_| log.text.len() > WHOLE) {
        Some(sifter) => sifted(sifter, &log.text, &cx.shared.uids_on(&cx.node)),
        None => log.text.to_vec(),
    };
    // Each pod of the node gets the same: it is masked once.
    Ok((cx.masked(&String::from_utf8_lossy(&kept)).into_bytes(), log.bytes))
}

fn sifted(sifter: &Sifter, log: &[u8], uids: &[String]) -> Vec<u8> {
    let mut merge = Merge::new(KEPT_BYTES);
    let own = own_records(log, uids);
    let mut from = 0;
    while from < log.len() {
        let to = (from + sift::BLOCK).min(log.len());
        // Ranges are of the region, which begins with the log here.
        let whole: Vec<Range<usize>> =
            own.iter().map(|r| r.start.max(from)..r.end.min(to)).filter(|r| r.start < r.end).collect();
        merge.push(sifter.part(log, from..to, &whole));
        from = to;
    }
    sift::fold(&merge.finish())
}

/// Where records stand that name one of the pods: from "invoked oom-killer" to the process that was killed.
fn own_records(log: &[u8], uids: &[String]) -> Vec<Range<usize>> {
    let uids: HashSet<&str> = uids.iter().map(String::as_str).collect();
    let mut records: Vec<Range<usize>> = Vec::new();
    let (mut begin, mut named) = (None, false);
    let mut at = 0;
    for line in log.split_inclusive(|b| *b == b'\n') {
        let end = at + line.len();
        let text = String::from_utf8_lossy(line);
        if text.contains("invoked oom-killer") {
            (begin, named) = (Some(at), false);
        }
        named = named || pods_in(&text).any(|uid| uids.contains(uid.as_str()));
        if text.contains("Killed process") || text.contains("Killed task") {
            if named {
                let from = begin.filter(|b| end - b <= MAX_RECORD).unwrap_or(at);
                records.push(from..end);
            }
            (begin, named) = (None, false);
        }
        at = end;
    }
    let surplus = records.len().saturating_sub(OWN_RECORDS);
    records.drain(..surplus);
    records
}

/// UIDs behind "pod" in the cgroup paths of a line: cgroupfs writes them as they are, systemd with underscores.
pub(crate) fn pods_in(line: &str) -> impl Iterator<Item = String> {
    line.split("pod").skip(1).filter_map(|rest| {
        let uid: String = rest
            .chars()
            .take_while(|c| c.is_ascii_hexdigit() || matches!(c, '-' | '_'))
            .map(|c| if c == '_' { '-' } else { c })
            .collect();
        (uid.len() >= 8).then_some(uid)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dualplane_core::knowledge::Knowledge;

    fn record(uid: &str, pid: u32) -> String {
        format!(
            "Nov 21 10:00:00 n kernel: python3 invoked oom-killer: gfp_mask=0xcc0\n\
             Nov 21 10:00:00 n kernel: memory: usage 98304kB, limit 98304kB, failcnt 1\n{}\
             Nov 21 10:00:00 n kernel: oom-kill:constraint=CONSTRAINT_MEMCG,task_memcg=/kubepods/burstable/pod{uid}/abc,task=python3,pid={pid},uid=0\n\
             Nov 21 10:00:00 n kernel: Memory cgroup out of memory: Killed process {pid} (python3) total-vm:1kB\n",
            "Nov 21 10:00:00 n kernel: [ 1234]     0  1234  100 100 python3\n".repeat(60)
        )
    }

    #[test]
    fn a_pods_own_record_is_kept_among_hundreds() {
        let uid = "3eeee5db-6611-4802-9456-dfd27caa2b83";
        let mut log = String::new();
        for i in 0..400 {
            log.push_str(&record(
                if i == 200 { uid } else { "11111111-2222-3333-4444-555555555555" },
                1000 + i,
            ));
        }
        let knowledge = Knowledge::embedded().unwrap();
        let sifter = Sifter::new(&knowledge).unwrap();
        let kept = String::from_utf8(sifted(&sifter, log.as_bytes(), &[uid.to_owned()])).unwrap();
        assert!(kept.len() < 2 * KEPT_BYTES, "{}", kept.len());
        assert!(kept.contains(&format!("pod{uid}")) && kept.contains("Killed process 1200 "));
        let whole = record(uid, 1200);
        assert!(kept.contains(&whole), "the record is whole");
        // Without the pod's name it is one of many.
        let without = String::from_utf8(sifted(&sifter, log.as_bytes(), &[])).unwrap();
        assert!(!without.contains(uid));
    }

    #[test]
    fn systemd_spells_uids_with_underscores() {
        let log = record("3eeee5db_6611_4802_9456_dfd27caa2b83", 1);
        assert_eq!(own_records(log.as_bytes(), &["3eeee5db-6611-4802-9456-dfd27caa2b83".into()]).len(), 1);
        assert_eq!(own_records(log.as_bytes(), &["other".into()]), Vec::<Range<usize>>::new());
        // A static pod's group has the hash of its manifest.
        let hash = "0f1e2d3c4b5a69788796a5b4c3d2e1f0";
        assert_eq!(own_records(record(hash, 1).as_bytes(), &[hash.to_owned()]).len(), 1);
        let uids: Vec<String> =
            pods_in("task_memcg=/kubepods-pod3eeee5db_6611.slice/x,y=/kubepods/podcafe/pod12345678-9")
                .collect();
        assert_eq!(uids, ["3eeee5db-6611", "12345678-9"], "too short to be one");
    }
}
