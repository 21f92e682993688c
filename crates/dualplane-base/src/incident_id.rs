//! Names of incidents: sorted by time, safe as a name of a file and in a URL.

/// Longest name: with its suffix below the 255 bytes of a file system.
const MAX_ID: usize = 180;
/// Characters of one part.
const PART: usize = 63;

/// `20261121T213812.345Z-NAMESPACE-POD-CONTAINER-3-0123abcd`. What a name may not hold becomes `_`.
#[must_use]
pub fn id_of(died_at: &str, parts: &[&str]) -> String {
    let time: String =
        died_at.chars().filter(|c| c.is_ascii_digit() || matches!(c, 'T' | '.' | 'Z')).collect();
    let mut out = time;
    for part in parts.iter().filter(|p| !p.is_empty()) {
        out.push('-');
        out.extend(part.chars().take(PART).map(safe));
    }
    out.truncate(MAX_ID);
    out
}

fn safe(c: char) -> char {
    if c.is_ascii_alphanumeric() || matches!(c, '-' | '.') { c } else { '_' }
}

/// It is a name as [`id_of`] makes them: no way out of the folder, nothing for a terminal.
#[must_use]
pub fn is_id(text: &str) -> bool {
    (1..=MAX_ID).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'))
}
