//! Follows a list of objects: read page by page, then watched from there for as long as the API server lets it be.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::api::{Api, ApiError, path};
use crate::find::text;

/// The server ends a watch after this time, and it goes on from where it was. A connection that is dead without a word lasts no
/// longer than a little more.
const WATCH: Duration = Duration::from_secs(240);
/// For the end of a watch.
const SLACK: Duration = Duration::from_secs(15);
/// Objects of a page: with those of a pod, up to 128 KiB each.
const PAGE: usize = 250;
/// A million objects.
const MAX_PAGES: usize = 4000;
/// Of an event: an object of etcd has at most 1.5 MiB, and JSON may write its bytes with more.
const MAX_EVENT: usize = 8 << 20;

/// What is heard.
#[derive(Debug)]
pub enum News {
    /// All that is there follows, and then [`News::Whole`].
    Begins,
    /// It is there, in this state.
    Is(Value),
    /// It was deleted; its last state.
    Gone(Value),
    /// All that is there was told.
    Whole,
}

#[derive(Deserialize)]
struct Event {
    r#type: String,
    object: Value,
}

/// One list that is followed.
#[derive(Debug)]
pub struct Follower<'a> {
    api: &'a Api,
    list: String,
    /// From where a watch goes on; empty: a list first.
    version: String,
}

/// Where a watch that is under way stands.
#[derive(Default)]
struct Heard {
    version: String,
    line: Vec<u8>,
    /// What ended it.
    fault: Option<ApiError>,
}

impl<'a> Follower<'a> {
    /// Of the objects below this path.
    #[must_use]
    pub fn new(api: &'a Api, list: String) -> Self {
        Self { api, list, version: String::new() }
    }

    /// The next round begins with all that is there.
    pub fn forget(&mut self) {
        self.version.clear();
    }

    /// All that is there, unless that was told before, and then what changes, for some minutes. May be dropped at any point.
    ///
    /// # Errors
    /// See [`ApiError`]. The next round goes on where this one ended, or from the beginning where the API server has forgotten.
    pub async fn round(&mut self, mut tell: impl FnMut(News)) -> Result<(), ApiError> {
        if self.version.is_empty() {
            self.version = self.all(&mut tell).await?;
        }
        let seconds = WATCH.as_secs().to_string();
        let query = [
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", self.version.as_str()),
            ("timeoutSeconds", seconds.as_str()),
        ];
        let path = path::with_query(&self.list, &query);
        let (version, mut heard) = (&mut self.version, Heard::default());
        let ended = self
            .api
            .stream_while(&path, WATCH + SLACK, |chunk| {
                let goes_on = heard.take(&path, chunk, &mut tell);
                if !heard.version.is_empty() {
                    version.clone_from(&heard.version);
                }
                goes_on
            })
            .await;
        match heard.fault.map_or(ended.map(drop), Err) {
            Err(ApiError::Expired(_)) => self.version.clear(),
            // Silence for longer than the server lets a watch be: the connection is dead.
            Err(ApiError::TimedOut(_)) => {}
            other => return other,
        }
        Ok(())
    }

    async fn all(&self, tell: &mut impl FnMut(News)) -> Result<String, ApiError> {
        tell(News::Begins);
        let (mut next, size) = (String::new(), PAGE.to_string());
        for _ in 0..MAX_PAGES {
            let mut query = vec![("limit", size.as_str())];
            if !next.is_empty() {
                query.push(("continue", next.as_str()));
            }
            let page = self.api.page(&path::with_query(&self.list, &query)).await?;
            page.items.into_iter().for_each(|item| tell(News::Is(item)));
            next = page.next;
            if next.is_empty() {
                tell(News::Whole);
                return Ok(page.version);
            }
        }
        let why = format!("it has more than {} objects", MAX_PAGES * PAGE);
        Err(ApiError::InvalidResponse { path: self.list.clone(), why })
    }
}

impl Heard {
    /// Takes a piece of the stream, in which each line is an event; whether it goes on.
    fn take(&mut self, path: &str, chunk: &[u8], tell: &mut impl FnMut(News)) -> bool {
        for piece in chunk.split_inclusive(|b| *b == b'\n') {
            self.line.extend_from_slice(piece);
            let done = match self.line.last() {
                Some(b'\n') => self.event(path, tell),
                _ if self.line.len() > MAX_EVENT => {
                    Err(ApiError::TooLarge { path: path.to_owned(), bound: MAX_EVENT })
                }
                _ => continue,
            };
            self.line.clear();
            if let Err(e) = done {
                self.fault = Some(e);
                return false;
            }
        }
        true
    }

    fn event(&mut self, path: &str, tell: &mut impl FnMut(News)) -> Result<(), ApiError> {
        let event: Event = serde_json::from_slice(&self.line).map_err(|e| ApiError::InvalidResponse {
            path: path.to_owned(),
            why: format!("an event of the watch: {e}"),
        })?;
        if event.r#type == "ERROR" {
            let status = event.object.get("code").and_then(Value::as_u64).unwrap_or(0);
            let why = text(&event.object, "/message");
            return Err(match status {
                410 => ApiError::Expired(path.to_owned()),
                s => ApiError::Status { status: u16::try_from(s).unwrap_or(0), why },
            });
        }
        let version = text(&event.object, "/metadata/resourceVersion");
        match event.r#type.as_str() {
            "ADDED" | "MODIFIED" => tell(News::Is(event.object)),
            "DELETED" => tell(News::Gone(event.object)),
            // A bookmark is a version alone.
            _ => {}
        }
        // Behind what was told: a fault before must not skip it.
        self.version = version;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn heard(pieces: &[&[u8]]) -> (Heard, Vec<String>) {
        let (mut heard, mut told) = (Heard::default(), Vec::new());
        for piece in pieces {
            let goes_on = heard.take("/p", piece, &mut |news| {
                told.push(match news {
                    News::Is(v) => format!("is {}", text(&v, "/metadata/name")),
                    News::Gone(v) => format!("gone {}", text(&v, "/metadata/name")),
                    other => format!("{other:?}"),
                });
            });
            if !goes_on {
                break;
            }
        }
        (heard, told)
    }

    const STREAM: &str = concat!(
        r#"{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"7"}}}"#,
        "\n",
        r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}"#,
        "\n",
        r#"{"type":"DELETED","object":{"metadata":{"name":"a","resourceVersion":"12"}}}"#,
        "\n"
    );

    #[test]
    fn what_is_too_old_is_told_apart_from_what_failed() {
        let error = |code: u32| {
            let line =
                format!("{{\"type\":\"ERROR\",\"object\":{{\"code\":{code},\"message\":\"etcd\"}}}}\n");
            heard(&[STREAM.as_bytes(), line.as_bytes()])
        };
        let (old, told) = error(410);
        assert!(matches!(old.fault, Some(ApiError::Expired(_))), "{:?}", old.fault);
        assert_eq!(told, ["is a", "gone a"]);
        let (other, _) = error(500);
        assert!(matches!(other.fault, Some(ApiError::Status { status: 500, .. })));
        assert_eq!(other.version, "12");
        assert!(heard(&[b"{\n"]).0.fault.is_some());
        let endless = vec![b'x'; MAX_EVENT + 1];
        assert!(matches!(heard(&[&endless]).0.fault, Some(ApiError::TooLarge { .. })));
    }

    proptest! {
        #[test]
        fn a_stream_says_the_same_however_it_is_cut(mut cuts in prop::collection::vec(0..STREAM.len(), 0..12)) {
            cuts.extend([0, STREAM.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|w| &STREAM.as_bytes()[w[0]..w[1]]).collect();
            let (whole, told) = heard(&pieces);
            prop_assert_eq!(told, ["is a", "gone a"]);
            prop_assert_eq!((whole.version.as_str(), whole.line.len()), ("12", 0));
        }
    }
}
