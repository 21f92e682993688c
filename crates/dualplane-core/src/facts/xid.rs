//! Xid lines of the NVIDIA driver.

use super::Place;
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
