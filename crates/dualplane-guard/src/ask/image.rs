//! The size of a picture from its first bytes, without decoding it: PNG, GIF, WebP, JPEG.

/// Bytes of a picture that are looked at. A JPEG may carry a preview before its size.
const LOOK: usize = 64 << 10;

/// Pixels of a picture in base64, as a data URL carries it; `None` where the format is another.
pub(super) fn pixels(base64: &[u8]) -> Option<u64> {
    let head = decode(base64.get(..base64.len().min(LOOK / 3 * 4))?);
    let (w, h) = png(&head).or_else(|| gif(&head)).or_else(|| webp(&head)).or_else(|| jpeg(&head))?;
    Some(u64::from(w).saturating_mul(u64::from(h)))
}

/// Decodes as far as it goes.
fn decode(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut n) = (0_u32, 0);
    for b in text {
        let v = match b {
            b'A'..=b'Z' => b - b'A',
            b'a'..=b'z' => b - b'a' + 26,
            b'0'..=b'9' => b - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'\r' | b'\n' => continue,
            _ => break,
        };
        bits = (bits << 6) | u32::from(v);
        n += 6;
        if n >= 8 {
            n -= 8;
            out.push(u8::try_from((bits >> n) & 0xff).unwrap_or(0));
        }
    }
    out
}

fn be16(b: &[u8], at: usize) -> Option<u32> {
    Some((u32::from(*b.get(at)?) << 8) | u32::from(*b.get(at + 1)?))
}

fn le16(b: &[u8], at: usize) -> Option<u32> {
    Some(u32::from(*b.get(at)?) | (u32::from(*b.get(at + 1)?) << 8))
}

fn png(b: &[u8]) -> Option<(u32, u32)> {
    let long = |at| Some((be16(b, at)? << 16) | be16(b, at + 2)?);
    b.starts_with(b"\x89PNG\r\n\x1a\n").then(|| Some((long(16)?, long(20)?)))?
}

fn gif(b: &[u8]) -> Option<(u32, u32)> {
    b.starts_with(b"GIF8").then(|| Some((le16(b, 6)?, le16(b, 8)?)))?
}

fn webp(b: &[u8]) -> Option<(u32, u32)> {
    if !b.starts_with(b"RIFF") || b.get(8..12)? != b"WEBP" {
        return None;
    }
    let le24 = |at| Some(le16(b, at)? | (u32::from(*b.get(at + 2)?) << 16));
    match b.get(12..16)? {
        b"VP8X" => Some((le24(24)? + 1, le24(27)? + 1)),
        b"VP8 " => Some((le16(b, 26)? & 0x3fff, le16(b, 28)? & 0x3fff)),
        b"VP8L" => {
            let bits = le16(b, 21)? | (le16(b, 23)? << 16);
            Some(((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1))
        }
        _ => None,
    }
}

fn jpeg(b: &[u8]) -> Option<(u32, u32)> {
    if !b.starts_with(b"\xff\xd8") {
        return None;
    }
    let mut at = 2;
    loop {
        if *b.get(at)? != 0xff {
            return None;
        }
        match *b.get(at + 1)? {
            // Fill bytes, and markers without a length.
            0xff => at += 1,
            0x01 | 0xd0..=0xd7 => at += 2,
            // Frames; the tables that share their numbers are C4, C8 and CC.
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Some((be16(b, at + 7)?, be16(b, at + 5)?));
            }
            _ => at += 2 + usize::try_from(be16(b, at + 2)?).ok()?.max(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes() {
        // A PNG of 1 by 1, as it stands in a hundred examples.
        assert_eq!(pixels(b"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="), Some(1));
        assert_eq!(pixels(b"R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"), Some(1));
        assert_eq!(jpeg(b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x11\x08\x01\x00\x02\x00"), Some((512, 256)));
        assert_eq!(pixels(b"!!!"), None);
    }

    proptest! {
        #[test]
        fn any_bytes(b in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = pixels(&b);
            let mut j = b"\xff\xd8".to_vec();
            j.extend(b);
            let _ = jpeg(&j);
        }
    }
}
