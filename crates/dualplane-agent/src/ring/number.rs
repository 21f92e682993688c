//! Numbers of variable length (LEB128; signed ones as zigzag), and a cursor that never reads beyond its bytes.

/// Appends a number: 7 bits a byte, the lowest first.
pub(super) fn put(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Appends a signed number; one near zero is short.
pub(super) fn put_signed(out: &mut Vec<u8>, n: i64) {
    put(out, ((n << 1) ^ (n >> 63)) as u64);
}

/// Reads one behind the other. `None` at the end and where bytes make no number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a>(pub(super) &'a [u8]);

impl Cursor<'_> {
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let mut n = 0_u64;
        for shift in (0..).step_by(7).take(10) {
            let byte = self.byte()?;
            // The tenth byte holds the last bit.
            if shift == 63 && byte > 1 {
                return None;
            }
            n |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(n);
            }
        }
        None
    }

    pub(super) fn signed(&mut self) -> Option<i64> {
        let n = self.number()?;
        Some((n >> 1) as i64 ^ -((n & 1) as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_odd_bytes_are_none() {
        let all = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX];
        let mut out = Vec::new();
        for n in all {
            put(&mut out, n);
            put_signed(&mut out, n as i64);
            put_signed(&mut out, (n as i64).wrapping_neg());
        }
        let mut c = Cursor(&out);
        for n in all {
            assert_eq!(c.number(), Some(n));
            assert_eq!(c.signed(), Some(n as i64));
            assert_eq!(c.signed(), Some((n as i64).wrapping_neg()));
        }
        assert_eq!((c.byte(), c.number()), (None, None));
        assert_eq!(Cursor(&[0x80; 3]).number(), None);
        assert_eq!(Cursor(&[0xff; 10]).number(), None);
        assert_eq!(Cursor(&[0xff; 11]).number(), None);
    }
}
