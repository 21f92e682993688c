//! What the manifest of a bundle tells beside the list of its files.

use dualplane_base::schema::{Id, id};
use serde_json::Value;

use crate::evidence::{Bundle, Gap, Judged};

/// Gaps of one manifest, and characters of each of their texts.
const MAX_GAPS: usize = 200;
const MAX_GAP: usize = 600;
/// Characters of a container's name (63) and of the id of an instance (64 and a runtime's prefix).
const MAX_NAME: usize = 128;
/// GPUs of a container that a manifest names.
const MAX_GIVEN: usize = 128;

impl Bundle {
    /// What the capture could not get is missing here, too.
    pub(in crate::evidence) fn manifest(&mut self, value: &Value) {
        // What is known of it is read all the same: a bundle may be all that is left.
        let schema = value.get("schema").and_then(Value::as_str).and_then(id);
        if let Some(newer @ (Id::Newer(..) | Id::Older(..))) = schema {
            self.gap("manifest.json", &format!("{newer}; what is new in it was not read"), None);
        }
        let text = |gap: &Value, key: &str| {
            let text = gap.get(key)?.as_str()?;
            Some(crate::text::shorten(text, MAX_GAP).into_owned())
        };
        let gaps = value.get("gaps").and_then(Value::as_array).into_iter().flatten();
        for gap in gaps.take(MAX_GAPS) {
            if let Some((what, why)) = text(gap, "what").zip(text(gap, "why")) {
                self.gaps.push(Gap { what, why, command: text(gap, "command") });
            }
        }
        let of = |key: &str| value.pointer(key).and_then(Value::as_str).filter(|s| s.len() <= MAX_NAME);
        if let Some(container) = of("/incident/container").filter(|c| !c.is_empty()) {
            let container_id = of("/incident/container_id").map(str::to_owned);
            let died = of("/died_at").filter(|_| of("/incident/kind") == Some("end"));
            self.judged = Some(Judged {
                container: container.to_owned(),
                container_id,
                restart: value.pointer("/incident/restart").and_then(Value::as_u64),
                ended: died.and_then(crate::time::parse_rfc3339),
            });
        }
        let given = value.pointer("/incident/gpus_given").and_then(Value::as_array);
        let uuids = given.into_iter().flatten().filter_map(|g| g.get("uuid")?.as_str());
        self.given.extend(
            uuids.filter(|u| dualplane_base::device_id::is_uuid(u)).take(MAX_GIVEN).map(str::to_owned),
        );
    }
}
