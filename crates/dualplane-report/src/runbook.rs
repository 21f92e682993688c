//! The runbook of each class: the pages of `docs/runbooks/`, which the program carries, because a node on fire may have no
//! way out to the internet.

use dualplane_base::Class;

/// Where the manual of this version lies.
const MANUAL: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/v", env!("CARGO_PKG_VERSION"), "/docs");

/// The page of a class, in Markdown.
#[must_use]
pub fn page(class: Class) -> &'static str {
    match class {
        Class::HostOomKilled => include_str!("../../../docs/runbooks/host_oom_killed.md"),
        Class::HostNodeOom => include_str!("../../../docs/runbooks/host_node_oom.md"),
        Class::HostAllocFailure => include_str!("../../../docs/runbooks/host_alloc_failure.md"),
        Class::CudaOomLoad => include_str!("../../../docs/runbooks/cuda_oom_load.md"),
        Class::CudaOomRuntime => include_str!("../../../docs/runbooks/cuda_oom_runtime.md"),
        Class::KvCacheCapacity => include_str!("../../../docs/runbooks/kv_cache_capacity.md"),
        Class::Fragmentation => include_str!("../../../docs/runbooks/fragmentation.md"),
        Class::GpuCapacityConflict => include_str!("../../../docs/runbooks/gpu_capacity_conflict.md"),
        Class::MigSliceTooSmall => include_str!("../../../docs/runbooks/mig_slice_too_small.md"),
        Class::XidHardware => include_str!("../../../docs/runbooks/xid_hardware.md"),
        Class::NotMemory => include_str!("../../../docs/runbooks/not_memory.md"),
        Class::Unknown => include_str!("../../../docs/runbooks/unknown.md"),
    }
}

/// Where the same page can be read with a browser, as it was in this version.
#[must_use]
pub fn link(class: Class) -> String {
    format!("{MANUAL}/runbooks/{class}.md")
}

/// The command that prints it.
#[must_use]
pub fn command(class: Class) -> String {
    format!("dualplane runbook {class}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row that includes another class' page would tell the other plane's fix.
    #[test]
    fn each_class_has_its_own_page() {
        for class in Class::ALL {
            assert!(page(*class).starts_with(&format!("# {class}:")), "{class}");
            assert!(link(*class).ends_with(&format!("docs/runbooks/{class}.md")));
        }
    }
}
