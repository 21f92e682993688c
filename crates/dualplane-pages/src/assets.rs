//! What a page loads: a style, modules and the library of the plots, each under the sum of its bytes, so that a browser may
//! keep it for ever and an upgrade is seen at once.

/// One file.
#[derive(Clone, Copy)]
pub struct Asset {
    /// Its name, without a folder.
    pub name: &'static str,
    /// Its media type.
    pub media_type: &'static str,
    /// Its bytes.
    pub bytes: &'static [u8],
}

/// `sha256  name` of each, as `sha256sum` writes them; a test computes them anew.
const SUMS: &str = include_str!("../assets/SHA256SUMS");
/// So much of a sum stands in an address.
const SHORT: usize = 16;

const JS: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";

const ASSETS: &[Asset] = &[
    Asset { name: "page.css", media_type: CSS, bytes: include_bytes!("../assets/page.css") },
    Asset { name: "plot.css", media_type: CSS, bytes: dualplane_base::plot::STYLE.as_bytes() },
    Asset { name: "copy.js", media_type: JS, bytes: include_bytes!("../assets/copy.js") },
    Asset { name: "live.js", media_type: JS, bytes: include_bytes!("../assets/live.js") },
    Asset { name: "planes.js", media_type: JS, bytes: include_bytes!("../assets/planes.js") },
    Asset { name: "icon.svg", media_type: "image/svg+xml", bytes: include_bytes!("../assets/icon.svg") },
    Asset {
        name: "uPlot.iife.min.js",
        media_type: JS,
        bytes: include_bytes!("../assets/uplot/uPlot.iife.min.js"),
    },
    Asset { name: "uPlot.min.css", media_type: CSS, bytes: include_bytes!("../assets/uplot/uPlot.min.css") },
    Asset {
        name: "uPlot.LICENSE.txt",
        media_type: "text/plain; charset=utf-8",
        bytes: include_bytes!("../assets/uplot/LICENSE"),
    },
];

/// All of them.
#[must_use]
pub fn assets() -> &'static [Asset] {
    ASSETS
}

/// The one that an address of [`Asset::path`] means; the part before the name must be its sum's.
#[must_use]
pub fn asset(sum: &str, name: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|a| a.name == name && a.short() == sum)
}

impl Asset {
    /// The SHA-256 of its bytes, in hexadecimal digits.
    #[must_use]
    pub fn sha256(&self) -> &'static str {
        let of = |line: &'static str| line.split_once("  ").filter(|(_, name)| *name == self.name);
        SUMS.lines().find_map(of).map_or("", |(sum, _)| sum)
    }

    fn short(&self) -> &'static str {
        self.sha256().get(..SHORT).unwrap_or_default()
    }

    /// Its address below the server's root: `assets/SUM/NAME`.
    #[must_use]
    pub fn path(&self) -> String {
        format!("assets/{}/{}", self.short(), self.name)
    }
}

/// The address of the file with a name; empty where there is none, which a test excludes.
pub(crate) fn path(name: &str) -> String {
    ASSETS.iter().find(|a| a.name == name).map(Asset::path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    /// Rewrites the list where it is asked to: what a browser keeps under an old sum must be the old bytes.
    #[test]
    #[allow(clippy::disallowed_methods)]
    fn each_sum_is_that_of_its_bytes() {
        let mut sums = String::new();
        for a in assets() {
            let sum = ring::digest::digest(&ring::digest::SHA256, a.bytes);
            let hex: String = sum.as_ref().iter().fold(String::new(), |mut s, b| {
                let _ = write!(s, "{b:02x}");
                s
            });
            let _ = writeln!(sums, "{hex}  {}", a.name);
        }
        expectorate::assert_contents(concat!(env!("CARGO_MANIFEST_DIR"), "/assets/SHA256SUMS"), &sums);
    }

    #[test]
    fn an_address_leads_to_its_file_and_no_other_does() {
        for a in assets() {
            let path = a.path();
            let (sum, name) = path.strip_prefix("assets/").and_then(|p| p.split_once('/')).unwrap();
            assert_eq!(asset(sum, name).map(|a| a.name), Some(a.name), "{path}");
            assert!(asset("", name).is_none() && asset("0000000000000000", name).is_none());
        }
        assert!(asset("", "../Cargo.toml").is_none());
    }
}
