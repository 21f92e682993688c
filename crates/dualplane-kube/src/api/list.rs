//! Lists, page by page.

use serde_json::Value;

use super::{Api, ApiError, parse};
use crate::api::path;
use crate::find::text;

/// Objects of one request: as kubectl does it.
const PAGE: usize = 500;
/// Pages: a namespace of 100,000 events, or 5,000 pods twenty times over.
const MAX_PAGES: usize = 200;
/// Bytes of the objects that are kept, as they came; in memory they take some times more. 5,000 whole pods are 50 MiB.
const MAX_KEPT: usize = 128 << 20;

/// A list, or its first part.
#[derive(Debug, Default)]
pub struct Listed {
    /// Objects.
    pub items: Vec<Value>,
    /// More were there than were read.
    pub cut: bool,
}

impl Api {
    /// A list. `keep` sees each object first and may shrink or drop it, so that large lists are never held whole.
    ///
    /// # Errors
    /// See [`ApiError`]. A list that expired while it was read (410) is handed on as far as it came, and is `cut`.
    pub async fn list(
        &self,
        base: &str,
        query: &[(&str, &str)],
        mut keep: impl FnMut(Value) -> Option<Value>,
    ) -> Result<Listed, ApiError> {
        let mut listed = Listed::default();
        let (mut next, mut kept) = (String::new(), 0);
        for _ in 0..MAX_PAGES {
            let size = PAGE.to_string();
            let mut all: Vec<(&str, &str)> = query.to_vec();
            all.push(("limit", &size));
            if !next.is_empty() {
                all.push(("continue", &next));
            }
            let path = path::with_query(base, &all);
            let body = match self.get(&path).await {
                Ok(body) => body,
                // What was read so far is true of the moment at which it was read.
                Err(ApiError::Expired(_)) if !next.is_empty() => {
                    listed.cut = true;
                    return Ok(listed);
                }
                Err(e) => return Err(e),
            };
            let mut page = parse(&path, &body)?;
            let (kind, version) = (item_kind(&page), text(&page, "/apiVersion"));
            if let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) {
                let items = items.into_iter().map(|mut item| {
                    name_kind(&mut item, &kind, &version);
                    item
                });
                let (before, all) = (listed.items.len(), items.len());
                listed.items.extend(items.filter_map(&mut keep));
                kept += body.len() / all.max(1) * (listed.items.len() - before);
            }
            next = text(&page, "/metadata/continue");
            if next.is_empty() {
                return Ok(listed);
            }
            if kept > MAX_KEPT {
                break;
            }
        }
        listed.cut = true;
        Ok(listed)
    }
}

/// `PodList` holds pods; the items do not say so themselves.
fn item_kind(list: &Value) -> String {
    text(list, "/kind").strip_suffix("List").unwrap_or_default().to_owned()
}

fn name_kind(item: &mut Value, kind: &str, version: &str) {
    if let Value::Object(map) = item
        && !map.contains_key("kind")
        && !kind.is_empty()
    {
        map.insert("kind".into(), kind.into());
        map.insert("apiVersion".into(), version.into());
    }
}
