//! Little-endian numbers and runs of bytes; what is not there is zero or short, never a panic.

use std::io::{self, Read};

pub(super) fn take(from: &mut (impl Read + ?Sized), len: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(len).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..at + N).and_then(|b| b.try_into().ok()).unwrap_or([0; N])
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(number(bytes, at))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(number(bytes, at))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(number(bytes, at))
}
