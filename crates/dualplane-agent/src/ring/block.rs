//! Blocks of a segment: length, CRC, kind, body. A tail that a kill or a full disk cut off fails one of the first two.
//!
//! The checksum covers the length too, so that zeros (a tail that the file system never wrote) are no block.

/// Length and CRC-32 (IEEE), 4 bytes each, little endian.
const HEAD: usize = 8;
/// The largest block: a table of 4,096 containers has some 2 MiB.
const MAX_BLOCK: usize = 8 << 20;

/// What a block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// JSON: version, boot, run.
    Header = 1,
    /// Notes, one JSON object a line: all that holds when the segment begins.
    Table = 2,
    /// Notes of one round.
    Notes = 3,
    /// Records of one round.
    Records = 4,
}

/// Appends a block.
pub(super) fn put(out: &mut Vec<u8>, kind: Kind, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; HEAD]);
    out.push(kind as u8);
    fill(out);
    let length = u32::try_from(out.len() - start - HEAD).unwrap_or(u32::MAX).to_le_bytes();
    let payload = out.get(start + HEAD..).unwrap_or_default();
    let sum = checksum(length, payload).to_le_bytes();
    for (to, from) in out.iter_mut().skip(start).zip(length.into_iter().chain(sum)) {
        *to = from;
    }
}

fn checksum(length: [u8; 4], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&length);
    hasher.update(payload);
    hasher.finalize()
}

/// What stands at the front of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next<'a> {
    /// A block: its kind as a number (there may be new ones), its body, what is behind it.
    Block(u8, &'a [u8], &'a [u8]),
    /// Nothing.
    End,
    /// No whole block.
    Torn,
}

/// Reads the block at the front.
pub(super) fn next(bytes: &[u8]) -> Next<'_> {
    if bytes.is_empty() {
        return Next::End;
    }
    read(bytes).map_or(Next::Torn, |(kind, body, rest)| Next::Block(kind, body, rest))
}

fn read(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (sum, rest) = rest.split_first_chunk::<4>()?;
    let size = usize::try_from(u32::from_le_bytes(*length)).ok().filter(|s| *s <= MAX_BLOCK)?;
    let (payload, rest) = rest.split_at_checked(size)?;
    let (kind, body) = payload.split_first()?;
    (checksum(*length, payload) == u32::from_le_bytes(*sum)).then_some((*kind, body, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_comes_back_whole_or_not_at_all() {
        let mut out = Vec::new();
        put(&mut out, Kind::Notes, |o| o.extend_from_slice(b"hello"));
        let first = out.len();
        put(&mut out, Kind::Records, |o| o.push(7));
        let Next::Block(3, b"hello", rest) = next(&out) else { panic!() };
        assert_eq!(next(rest), Next::Block(4, &[7], &[]));
        assert_eq!(next(&[]), Next::End);
        for cut in 1..first {
            assert_eq!(next(&out[..cut]), Next::Torn, "{cut}");
        }
        for bit in 0..first * 8 {
            let mut bytes = out[..first].to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(next(&bytes), Next::Torn, "{bit}");
        }
        assert_eq!(next(&[0; 64]), Next::Torn);
    }
}
