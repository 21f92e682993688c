//! Numbers out of small kernel files, from bytes and without allocation.

use std::fs::File;
use std::os::unix::fs::FileExt;

use dualplane_base::units::{Bytes, KIB};

/// Decimal digits at the beginning, behind blanks; `None` where there is none or where it does not fit.
#[must_use]
pub fn leading(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii_start();
    let digits = text.iter().take_while(|b| b.is_ascii_digit());
    let mut any = false;
    let mut value = 0_u64;
    for d in digits {
        any = true;
        value = value.checked_mul(10)?.checked_add(u64::from(d.wrapping_sub(b'0')))?;
    }
    any.then_some(value)
}

/// Lines of `key value` as pairs.
pub fn pairs(text: &[u8]) -> impl Iterator<Item = (&[u8], u64)> {
    text.split(|b| *b == b'\n').filter_map(|line| {
        let at = line.iter().position(|b| *b == b' ')?;
        let (key, rest) = line.split_at_checked(at)?;
        Some((key, leading(rest)?))
    })
}

/// `Key:   123 kB` of `/proc/meminfo` and `/proc/PID/status`.
pub fn kilobytes(text: &[u8]) -> impl Iterator<Item = (&[u8], Bytes)> {
    text.split(|b| *b == b'\n').filter_map(|line| {
        let at = line.iter().position(|b| *b == b':')?;
        let (key, rest) = line.split_at_checked(at)?;
        let value = rest.get(1..)?;
        value.trim_ascii_end().ends_with(b"kB").then_some(())?;
        Some((key, Bytes(leading(value)?.saturating_mul(KIB))))
    })
}

/// A share like `12.34` in hundredths.
#[must_use]
pub fn hundredths(text: &[u8]) -> Option<u64> {
    let whole = leading(text)?;
    let at = text.iter().position(|b| *b == b'.')?;
    let tens = text.get(at + 1).filter(|b| b.is_ascii_digit())?;
    let ones = text.get(at + 2).filter(|b| b.is_ascii_digit()).unwrap_or(&b'0');
    let part = u64::from(tens.wrapping_sub(b'0')) * 10 + u64::from(ones.wrapping_sub(b'0'));
    whole.checked_mul(100)?.checked_add(part)
}

/// Reads a small file from its beginning, again and again through one descriptor. The kernel makes the content anew at
/// offset 0. A file that fills the buffer is cut at its last whole line.
///
/// # Errors
/// What the kernel says: `ENODEV` where a cgroup is gone, `ENOTSUP` where a counter is switched off.
pub fn read_again<'b>(file: &File, buffer: &'b mut [u8]) -> std::io::Result<&'b [u8]> {
    let n = file.read_at(buffer, 0)?;
    let full = n == buffer.len();
    let text = buffer.get(..n).unwrap_or_default();
    let end = if full { text.iter().rposition(|b| *b == b'\n').unwrap_or(0) } else { n };
    Ok(text.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_what_is_none() {
        assert_eq!(leading(b"42\n"), Some(42));
        assert_eq!(leading(b"  7 kB"), Some(7));
        assert_eq!(leading(b"max\n"), None);
        assert_eq!(leading(b""), None);
        assert_eq!(leading(b"99999999999999999999"), None);
        assert_eq!(hundredths(b"1.25 avg60"), Some(125));
        assert_eq!(hundredths(b"100.00"), Some(10_000));
        assert_eq!(hundredths(b"1"), None);
        let all: Vec<_> = pairs(b"anon 1\nfile\nshmem x\nkernel 3\n").collect();
        assert_eq!(all, [(&b"anon"[..], 1), (b"kernel", 3)]);
        let all: Vec<_> = kilobytes(b"MemTotal:  2 kB\nHugePages_Total:  0\nodd\n").collect();
        assert_eq!(all, [(&b"MemTotal"[..], Bytes(2048))]);
    }

    #[test]
    fn a_file_is_read_again_from_its_beginning() {
        let mut f = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut f, b"12\n345\n678").unwrap();
        let file = File::open(f.path()).unwrap();
        let mut small = [0; 8];
        assert_eq!(read_again(&file, &mut small).unwrap(), b"12\n345");
        let mut large = [0; 64];
        assert_eq!(read_again(&file, &mut large).unwrap(), b"12\n345\n678");
        assert_eq!(read_again(&file, &mut large).unwrap(), b"12\n345\n678");
    }
}
