//! Words for how busy a server is.

use dualplane_base::text::{counted, name};
use dualplane_core::verdict::proof::{Busy, Untold};

pub(super) fn sentence(proof: &Busy) -> String {
    match proof {
        Busy::Use { gpu, mean, samples } => {
            let of = counted(*samples as u64, "sample");
            format!("GPU {gpu} was used {:.0} % of the time ({of})", mean * 100.0)
        }
        Busy::Queue { first, last } if first == last => format!("{last:.0} requests wait"),
        Busy::Queue { first, last } => format!("the queue went from {first:.0} to {last:.0} requests"),
        Busy::FirstToken { before: Some(before), after } => {
            format!("the mean time to the first token went from {before:.2} s to {after:.2} s")
        }
        Busy::FirstToken { before: None, after } => {
            format!("the mean time to the first token was {after:.2} s")
        }
        Busy::Generated { before, after } => {
            format!("{after:.0} tokens are generated in a second, {before:.0} before")
        }
        Busy::Failed { name: n, count } if *count < 1.0 => {
            format!("{} did not rise: no request failed", name(n))
        }
        Busy::Failed { name: n, count } => format!("{} rose by {count:.0}: requests fail", name(n)),
        Busy::Throttled(share) => {
            format!("the kernel held back the container's CPUs in {:.0} % of the periods", share * 100.0)
        }
        Busy::Storage(share) => {
            format!("the container waited for storage {:.0} % of the time", share * 100.0)
        }
        Busy::Dropped(count) => format!("{count:.0} packets of the pod were dropped"),
        Busy::Admitted { running, most } => {
            format!("{running:.0} requests run, as many as the launch allows ({most:.0})")
        }
        Busy::Untold(what) => match what {
            Untold::Use => "the evidence does not show how much the card is used",
            Untold::Errors => "the evidence does not show whether requests fail",
            Untold::Throughput => "the evidence does not show whether as many tokens are generated as before",
            Untold::Host => {
                "nothing shows what holds it back: CPU, tokenizer, storage, network or the size of batches"
            }
        }
        .to_owned(),
    }
}
