//! `dualplane.rehearsal/v1`.

use serde::Serialize;

use super::Rehearsal;

/// Schema id.
pub const REHEARSAL: &str = "dualplane.rehearsal/v1";

#[derive(Serialize)]
struct RehearsalV1<'a> {
    schema: &'static str,
    #[serde(flatten)]
    report: &'a Rehearsal,
}

/// As JSON.
///
/// # Errors
/// Not on any report: the structures hold nothing that JSON cannot.
pub fn json(r: &Rehearsal) -> Result<String, serde_json::Error> {
    dualplane_base::json::pretty(&RehearsalV1 { schema: REHEARSAL, report: r })
}
