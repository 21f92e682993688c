//! Words for what a launch asks for.

use dualplane_base::text::{counted, name};
use dualplane_base::units::thousands;
use dualplane_core::verdict::proof::Launch;

pub(super) fn sentence(proof: &Launch) -> String {
    match proof {
        Launch::Weights { weights, total } => {
            format!("the weights take {weights} of {total} ({:.0} %)", weights.share_of(*total) * 100.0)
        }
        Launch::Shards { done, all } => {
            format!("{done} of {} of the checkpoint were loaded", counted(*all, "file"))
        }
        Launch::NeverServed => {
            "it failed while it loaded: the card then holds weights and little else".to_owned()
        }
        Launch::Served => "it served before: the weights were in place".to_owned(),
        Launch::NotQuantised => "no setting loads the weights in fewer bits".to_owned(),
        Launch::Quantised { name: n, value } => {
            format!("the weights are loaded in fewer bits already ({} {})", name(n), name(value))
        }
        Launch::Demand { sequences, length, pool } => {
            let tokens = sequences.saturating_mul(*length);
            let pool = pool.map(|p| format!("; the cache holds {}", thousands(p))).unwrap_or_default();
            format!(
                "{} sequences of {} tokens may need {} tokens{pool}",
                thousands(*sequences),
                thousands(*length),
                thousands(tokens)
            )
        }
        Launch::PoolTaken => {
            "the engine takes its KV cache before it serves: what failed is outside of it".to_owned()
        }
        Launch::Share { share, rest } => {
            let rest = rest.map(|r| format!(", which leaves {r} of the card")).unwrap_or_default();
            format!("the engine was given a share of {share} of the card{rest}")
        }
        Launch::Asked { requested, total } => {
            format!("{requested} failed, {:.1} % of the card", requested.share_of(*total) * 100.0)
        }
        Launch::Ranks { ranks, gpus } if ranks < gpus => {
            format!("the container has {gpus} GPUs, and the launch splits the model over {ranks}")
        }
        Launch::Ranks { gpus, .. } => {
            format!("the model is split over all {} of the container", counted(*gpus, "GPU"))
        }
        Launch::Uneven { most, least } => format!(
            "the cards are not used alike: {:.0} % of the fullest, {:.0} % of the emptiest",
            most * 100.0,
            least * 100.0
        ),
        Launch::Own { own, total } => {
            format!("the process itself held {own} of {total} ({:.0} %)", own.share_of(*total) * 100.0)
        }
        Launch::Others { others, total } => {
            format!("others held {others} of {total} ({:.0} %)", others.share_of(*total) * 100.0)
        }
        Launch::ScalesBy { name: n, metrics } => format!(
            "the autoscaler {} follows {}, which tell nothing of GPU, queue or KV cache",
            name(n),
            name(metrics)
        ),
    }
}
