//! Private keys that stand over several lines, from `-----BEGIN … PRIVATE KEY-----` to `-----END`.

/// The key of 16384 bits takes some 200 lines.
const MAX_LINES: u32 = 500;
const MASK: &str = "[redacted:private_key]";

/// Whether such a block is open.
#[derive(Debug, Default)]
pub(super) struct Block {
    left: u32,
}

impl Block {
    pub(super) fn is_open(&self) -> bool {
        self.left > 0
    }

    /// Whether a line opens a block and does not close it.
    pub(super) fn opens(&mut self, text: &str) -> bool {
        let behind = text.rsplit_once("PRIVATE KEY").filter(|(head, _)| head.contains("-----BEGIN "));
        if behind.is_some_and(|(head, rest)| {
            !rest.contains("-----END") && head.rfind("-----BEGIN ") > head.rfind("-----END ")
        }) {
            self.left = MAX_LINES;
        }
        self.left > 0
    }

    /// What a line of an open block becomes; `None` where it is none, and the block ends.
    pub(super) fn goes_on(&mut self, text: &str) -> Option<String> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        if let Some(at) = text.find("-----END") {
            self.left = 0;
            let key = text.get(..at).unwrap_or_default();
            let mask = if key.trim().is_empty() { key } else { MASK };
            return Some(format!("{mask}{}", text.get(at..).unwrap_or_default()));
        }
        let bare = text.trim_matches([' ', '\t', '"', '\'', ',', '|', '+', '>', '\\', '\r']);
        let bare = bare.strip_suffix("\\n").unwrap_or(bare);
        let header = ["Proc-Type:", "DEK-Info:", "Version:", "Comment:", "Charset:", "Hash:"];
        let base64 = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'\\');
        if bare.is_empty() {
            return Some(text.to_owned());
        }
        if header.iter().any(|h| bare.starts_with(h)) || bare == MASK || bare.bytes().all(base64) {
            return Some(MASK.to_owned());
        }
        self.left = 0;
        None
    }
}
