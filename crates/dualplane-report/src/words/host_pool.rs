//! Words for pools of host memory.

use dualplane_core::verdict::proof::HostPool;

pub(super) fn sentence(proof: &HostPool) -> String {
    match proof {
        HostPool::Size { name: Some(name), arithmetic } => format!("{name}: {arithmetic}"),
        HostPool::Size { name: None, arithmetic } => arithmetic.clone(),
        HostPool::UpperBound(name) => {
            format!("{name} is an upper bound; the evidence does not show how full it was")
        }
        HostPool::BelowLimit => "on its own it stays below the limit".to_owned(),
    }
}
