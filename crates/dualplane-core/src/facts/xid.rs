//! Xid lines of the NVIDIA driver.

use super::Place;
use super::openings::{BEHIND_AN_ERROR, Opening};
use crate::time::Stamp;

/// One `NVRM: Xid` line.
#[derive(Debug, Clone)]
pub struct XidEvent {
    /// Code.
    pub code: u32,
    /// `0000:4a:00`.
    pub pci: String,
    /// Process, where the driver knew it.
    pub pid: Option<u64>,
    /// Its name.
    pub process: Option<String>,
    /// The driver says that another Xid caused this one.
    pub caused_by: Option<u32>,
    /// A link event that the driver itself calls not fatal (Xid 144 to 150).
    pub nonfatal: bool,
    /// What stands behind the code.
    pub detail: String,
    /// Where.
    pub place: Place,
    /// The raw line.
    pub text: String,
    /// When.
    pub stamp: Option<Stamp>,
}

/// What a Xid line has, and the driver's list of its GPUs.
pub(crate) const OPENINGS: &[Opening] = &[
    Opening::new("NVRM: Xid (", 3, BEHIND_AN_ERROR),
    Opening::new("NVRM: GPU at PCI:", 2, BEHIND_AN_ERROR),
    // A row of nvidia-smi: the domain of the address.
    Opening::new("|   0000", 1, 2),
];

/// A PCI address as the driver's Xid lines write it, `0000:4a:00`, from any of its spellings (`00000000:4A:00.0`, `4a:00.0`).
#[must_use]
pub fn pci_address(text: &str) -> Option<String> {
    let text = text.trim().to_ascii_lowercase();
    let text = text.split_once('.').map_or(text.as_str(), |(a, _)| a);
    let mut parts = text.rsplit(':');
    let (device, bus, domain) = (parts.next()?, parts.next()?, parts.next().unwrap_or("0"));
    let hex = |s: &str| u32::from_str_radix(s, 16).ok();
    (parts.next().is_none() && device.len() == 2 && bus.len() == 2 && domain.len() <= 8)
        .then(|| Some(format!("{:04x}:{:02x}:{:02x}", hex(domain)?, hex(bus)?, hex(device)?)))?
}

/// GPUs of one log that are kept: a node has 16 at most.
pub(super) const KEPT_GPUS: usize = 64;

/// A GPU that a line lists: its address, and its UUID where the driver prints that.
///
/// `NVRM: GPU at PCI:0000:18:00: GPU-…` of the driver, `|   0  NVIDIA H100  On  |   00000000:4A:00.0 Off |` of nvidia-smi.
pub(super) fn listed(text: &str) -> Option<(String, Option<String>)> {
    if let Some((_, rest)) = text.split_once("NVRM: GPU at PCI:") {
        let (address, uuid) = rest.split_once(": ")?;
        return Some((pci_address(address)?, Some(uuid.trim().to_owned()).filter(|u| u.starts_with("GPU-"))));
    }
    let row = text.trim_start().strip_prefix('|')?;
    let mut columns = row.split('|');
    let first = columns.next()?.trim_start();
    let bus = columns.next()?.split_whitespace().next()?;
    (first.starts_with(|c: char| c.is_ascii_digit()) && bus.len() >= 12 && bus.ends_with(".0"))
        .then(|| Some((pci_address(bus)?, None)))?
}

/// Reads `NVRM: Xid (PCI:<address>): <code>[, pid=…][, name=…], <text>`.
pub(super) fn parse(place: &Place, raw: &str, text: &str, stamp: Option<Stamp>) -> Option<XidEvent> {
    let rest = text.split_once("NVRM: Xid (")?.1;
    let (address, rest) = rest.split_once("): ")?;
    // On MIG the instance ids follow the address; old drivers leave out the word PCI.
    let pci = address.strip_prefix("PCI:").unwrap_or(address).split(' ').next()?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let code = digits.parse().ok()?;
    let detail = rest.get(digits.len()..)?.trim_start_matches([',', ' ']);
    let field = |key: &str| detail.split_once(key).map(|(_, r)| r.split(',').next().unwrap_or(r).trim());
    Some(XidEvent {
        code,
        pci: pci.to_owned(),
        pid: field("pid=").and_then(|p| p.trim_matches('\'').parse().ok()),
        process: field("name=").filter(|n| !n.contains("unknown")).map(str::to_owned),
        caused_by: detail
            .split_once("caused by previous Xid ")
            .and_then(|(_, c)| c.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok()),
        nonfatal: detail.contains("Nonfatal"),
        detail: detail.to_owned(),
        place: place.clone(),
        text: raw.to_owned(),
        stamp,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_listings() {
        for (text, want) in [
            ("00000000:4A:00.0", Some("0000:4a:00")),
            ("0000:4a:00", Some("0000:4a:00")),
            ("4a:00.0", Some("0000:4a:00")),
            ("00010000:01:00.0", Some("10000:01:00")),
            ("GPU-0", None),
            ("1:2:3:4", None),
            ("é:ü0:00", None),
        ] {
            assert_eq!(pci_address(text).as_deref(), want, "{text}");
        }
        let row =
            "|   0  NVIDIA H100 80GB HBM3          On  |   00000000:4A:00.0 Off |                    0 |";
        assert_eq!(listed(row), Some(("0000:4a:00".into(), None)));
        assert_eq!(listed("| N/A   33C    P0    70W /  700W |   1MiB / 81559MiB |"), None);
        let (at, uuid) = listed("NVRM: GPU at PCI:0000:18:00: GPU-3f0e6d2a-8a1c").unwrap();
        assert_eq!((at.as_str(), uuid.as_deref()), ("0000:18:00", Some("GPU-3f0e6d2a-8a1c")));
    }

    #[test]
    fn lines_of_all_shapes() {
        let place = Place { file: "k".into(), line: Some(1) };
        let p = |t: &str| parse(&place, t, t, None);
        let x =
            p("NVRM: Xid (PCI:0000:4a:00): 48, pid='<unknown>', name=<unknown>, An uncorrectable double bit")
                .unwrap();
        assert_eq!((x.code, x.pci.as_str(), x.pid, x.process), (48, "0000:4a:00", None, None));
        let x = p("NVRM: Xid (PCI:0007:01:00): 45, pid=1919440, name=python3, Ch 00000001 caused by previous Xid 149").unwrap();
        assert_eq!((x.code, x.pid, x.caused_by), (45, Some(1_919_440), Some(149)));
        assert_eq!(p("NVRM: Xid (PCI:0007:01:00): 149, NETIR_LINK_EVT  Fatal").unwrap().code, 149);
        assert_eq!(
            p("NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:00): 31, pid=7, name=a").unwrap().pci,
            "0000:01:00"
        );
        assert_eq!(p("NVRM: Xid (0000:03:00): 13, Graphics Exception").unwrap().code, 13);
        assert!(
            p("NVRM: Xid (PCI:0007:01:00): 149, NETIR_LINK_EVT  Nonfatal XC0 i0 Link 08").unwrap().nonfatal
        );
        assert!(p("NVRM: GPU at PCI:0000:4a:00").is_none());
    }
}
