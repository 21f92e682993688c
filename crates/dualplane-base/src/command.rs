//! Commands that a person pastes.

/// A command to run on the node, through the API so that it pastes anywhere.
#[must_use]
pub fn on_node(node: &str, command: &str) -> String {
    format!("kubectl debug node/{node} -it --profile=sysadmin --image=busybox -- chroot /host {command}")
}
