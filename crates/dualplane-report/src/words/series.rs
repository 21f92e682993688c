//! Words for metrics, one by one and over time.

use dualplane_base::time::Stamp;
use dualplane_core::verdict::proof::{Peak, Series, VramShare};

pub(super) fn sentence(proof: &Series) -> String {
    match proof {
        Series::Sample { name, value } => format!("{name} {value}"),
        Series::NoProcess => {
            "metrics show neither the process nor whether the limit or the node ran out".to_owned()
        }
        Series::OtherContainer => {
            "metrics show neither the time nor the process; the limit is another container's".to_owned()
        }
        Series::KvCache(share) => format!("the KV cache was at {:.1} %", share * 100.0),
        Series::AnonymousMemory(peak) => reached("anonymous memory", peak),
        Series::WorkingSet { peak, vram, kv_cache } => {
            let vram = vram.as_ref().map_or(String::new(), |(gpu, share)| {
                format!(", while VRAM was at {:.0} % (GPU {gpu})", share * 100.0)
            });
            let kv = kv_cache.map_or(String::new(), |k| format!(", the KV cache at {:.0} %", k * 100.0));
            format!("{}{vram}{kv}", reached("working set", peak))
        }
        Series::Vram(VramShare { gpu, used, total, at: stamp }) => {
            format!("VRAM of GPU {gpu}: {used} of {total}{}", at(*stamp))
        }
        Series::VramAtError { vram: VramShare { gpu, used, total, at: stamp }, working_set } => {
            let host = working_set.map_or(String::new(), |(share, limit)| {
                format!(
                    ", and the container's working set never exceeded {:.0} % of its limit {limit}",
                    share * 100.0
                )
            });
            let share = used.share_of(*total) * 100.0;
            format!("VRAM of GPU {gpu} was at {share:.1} % ({used} of {total}){}{host}", at(*stamp))
        }
    }
}

/// `working set reached 99.6 % of the limit 64.00 GiB (63.74 GiB) at …`.
fn reached(what: &str, peak: &Peak) -> String {
    let share = peak.used.share_of(peak.limit) * 100.0;
    format!("{what} reached {share:.1} % of the limit {} ({}){}", peak.limit, peak.used, at(peak.at))
}

fn at(stamp: Option<Stamp>) -> String {
    stamp.map(|t| format!(" at {}", t.show())).unwrap_or_default()
}
