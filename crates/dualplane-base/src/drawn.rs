//! Parts of names that Kubernetes draws: five letters behind a pod's name, up to ten of a `ReplicaSet`.

/// What it draws of: no vowels, nothing that looks like another (apimachinery `rand.SafeEncodeString`). A name that people
/// give seldom consists of them.
pub const LETTERS: &str = "bcdfghjklmnpqrstvwxz2456789";
/// Letters behind the name of a pod.
pub const POD: usize = 5;

/// Whether all of it may have been drawn.
#[must_use]
pub fn is_drawn(part: &str) -> bool {
    part.chars().all(|c| LETTERS.contains(c))
}
