//! A place in a list: behind one incident. New incidents do not move it.

use std::fmt;

use crate::incident::Incident;
use crate::keys::is_id;
use crate::time::Time;

/// Lists are sorted by the time of death, the newest first, and by name where that is the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// Time of death of the last incident that was shown.
    pub died_at: Time,
    /// Its name.
    pub id: String,
}

impl Cursor {
    /// Behind this incident.
    #[must_use]
    pub fn behind(incident: &Incident) -> Self {
        Self { died_at: incident.died_at, id: incident.id.clone() }
    }

    /// Reads what [`fmt::Display`] writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (ms, id) = text.split_once('~')?;
        let ms: i64 = ms.parse().ok()?;
        let died_at = Time::from_ms(ms);
        (died_at.ms() == ms && is_id(id)).then(|| Self { died_at, id: id.to_owned() })
    }

    /// It stands before this incident.
    #[must_use]
    pub fn is_before(&self, incident: &Incident) -> bool {
        (incident.died_at, incident.id.as_str()) < (self.died_at, self.id.as_str())
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}~{}", self.died_at.ms(), self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_what_it_writes() {
        let c = Cursor { died_at: Time::from_ms(-5), id: "a-1".to_owned() };
        assert_eq!(Cursor::parse(&c.to_string()), Some(c));
        for bad in ["", "5", "5~", "x~a", "5~../a", "9223372036854775807~a"] {
            assert_eq!(Cursor::parse(bad), None, "{bad}");
        }
    }
}
