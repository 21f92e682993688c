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

/// A page of a list.
pub(crate) struct Page {
    /// Objects, each with its kind.
    pub(crate) items: Vec<Value>,
    /// Where the next one begins; empty: this is the last.
    pub(crate) next: String,
    /// Of the list, from which a watch goes on.
    pub(crate) version: String,
    bytes: usize,
}

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
            let page = match self.page(&path).await {
                Ok(page) => page,
                // What was read so far is true of the moment at which it was read.
                Err(ApiError::Expired(_)) if !next.is_empty() => {
                    listed.cut = true;
                    return Ok(listed);
                }
                Err(e) => return Err(e),
            };
            let (before, all) = (listed.items.len(), page.items.len());
            listed.items.extend(page.items.into_iter().filter_map(&mut keep));
            kept += page.bytes / all.max(1) * (listed.items.len() - before);
            next = page.next;
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

    /// One page, whose path says which.
    pub(crate) async fn page(&self, path: &str) -> Result<Page, ApiError> {
        let body = self.get(path).await?;
        let mut page = parse(path, &body)?;
        let (kind, version) = (item_kind(&page), text(&page, "/apiVersion"));
        let mut items = match page.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        };
        items.iter_mut().for_each(|item| name_kind(item, &kind, &version));
        let at = |pointer| text(&page, pointer);
        let (next, version) = (at("/metadata/continue"), at("/metadata/resourceVersion"));
        Ok(Page { items, next, version, bytes: body.len() })
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
