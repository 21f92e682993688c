//! One record of `/dev/kmsg`: `level,sequence,microseconds,flags;message`, then ` KEY=value` lines.
//!
//! Source: Linux `Documentation/ABI/testing/dev-kmsg`.

/// A record, borrowed from what was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Syslog level, 0 to 7.
    pub level: u8,
    /// 0 for the kernel; else a program wrote it into `/dev/kmsg`.
    pub facility: u32,
    /// Number since boot.
    pub sequence: u64,
    /// Microseconds since boot.
    pub us: u64,
    /// The message, one line.
    pub text: &'a str,
    /// The whole first line, for quoting.
    pub raw: &'a str,
    /// `+pci:0000:4a:00.0`: the device that the kernel says it is about.
    pub device: Option<&'a str>,
}

/// Reads a record; `None` where it is none.
#[must_use]
pub fn parse(text: &str) -> Option<Record<'_>> {
    let mut lines = text.split('\n');
    let raw = lines.next()?;
    let (head, message) = raw.split_once(';')?;
    let mut parts = head.split(',');
    let priority: u32 = parts.next()?.parse().ok()?;
    let sequence = parts.next()?.parse().ok()?;
    let us = parts.next()?.parse().ok()?;
    parts.next()?;
    Some(Record {
        level: u8::try_from(priority & 7).unwrap_or(7),
        facility: priority >> 3,
        sequence,
        us,
        text: message,
        raw,
        device: lines.find_map(|l| l.strip_prefix(" DEVICE=")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_the_kernel_and_of_programs() {
        let r =
            parse("4,65338,27592798518,-;Code: 00 00\n SUBSYSTEM=pci\n DEVICE=+pci:0000:4a:00.0\n").unwrap();
        assert_eq!((r.level, r.facility, r.sequence, r.us), (4, 0, 65338, 27_592_798_518));
        assert_eq!((r.text, r.device), ("Code: 00 00", Some("+pci:0000:4a:00.0")));
        let r = parse("12,7,1,-,caller=T1;NVRM: Xid; a").unwrap();
        assert_eq!((r.level, r.facility, r.text, r.device), (4, 1, "NVRM: Xid; a", None));
        for odd in ["", " SUBSYSTEM=x", "a,b,c,-;x", "1,2,3;x", "[1.0] text", "-1,2,3,-;x"] {
            assert_eq!(parse(odd), None, "{odd}");
        }
    }
}
