//! Versions of engines, libraries and drivers, as they print them.

use std::fmt;

use serde::Serialize;

/// A release by its first three numbers, compared by number: `0.9.2` comes before `0.20.0`.
///
/// What stands behind the numbers does not count: a candidate, a development build or a build of other flags
/// (`0.11.2rc1`, `0.19.1.dev3+gabc`, `2.9.0+cu130`) has the code of the release that it leads to or is made of, and equals
/// it. A build number alone (`b4567` of llama.cpp) comes before every release, and builds are in the order of their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Version(pub u32, pub u32, pub u32);

impl Version {
    /// The leading numbers. `None` where there are not at least two, and the text is no build number.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some(build) = text.strip_prefix('b').and_then(leading) {
            return Some(Self(0, 0, build));
        }
        let mut numbers = text.trim_start_matches(['v', 'V']).split('.').map(leading);
        let (major, minor) = (numbers.next()??, numbers.next()??);
        Some(Self(major, minor, numbers.next().flatten().unwrap_or(0)))
    }

    /// The version that the tag of an image tells: `vllm/vllm-openai:v0.11.2-cu129` is 0.11.2.
    #[must_use]
    pub fn of_image(image: &str) -> Option<Self> {
        Self::parse(tag(image)?)
    }
}

/// The tag of an image; tags like `latest` are tags, too.
#[must_use]
pub fn tag(image: &str) -> Option<&str> {
    let name = image.rsplit_once('/').map_or(image, |(_, n)| n);
    Some(name.split_once('@').map_or(name, |(n, _)| n).split_once(':')?.1)
}

fn leading(text: &str) -> Option<u32> {
    let digits: String = text.chars().take_while(char::is_ascii_digit).take(6).collect();
    digits.parse().ok()
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self(0, 0, build) if *build > 0 => write!(f, "b{build}"),
            Self(major, minor, patch) => write!(f, "{major}.{minor}.{patch}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_as_they_are_printed() {
        for (text, want) in [
            ("0.11.2rc1", Some(Version(0, 11, 2))),
            ("v0.11.2", Some(Version(0, 11, 2))),
            ("v0.11.2-cu129", Some(Version(0, 11, 2))),
            ("0.19.1rc1.dev3+gabc", Some(Version(0, 19, 1))),
            ("0.11.1.dev0+g1234567.d20251001", Some(Version(0, 11, 1))),
            ("2.9.0+cu130", Some(Version(2, 9, 0))),
            ("580.159.03", Some(Version(580, 159, 3))),
            ("0.20", Some(Version(0, 20, 0))),
            ("b4567", Some(Version(0, 0, 4567))),
            ("latest", None),
            ("beta", None),
            ("2024-06-01", None),
            ("", None),
        ] {
            assert_eq!(Version::parse(text), want, "{text}");
        }
    }

    #[test]
    fn they_are_in_the_order_of_their_numbers() {
        let order = ["b4567", "b10001", "0.9.2", "0.11.2rc1", "0.20.0", "1.0.0", "580.95.05", "580.159.03"];
        let all: Vec<Version> = order.iter().map(|t| Version::parse(t).unwrap()).collect();
        assert!(all.windows(2).all(|w| w[0] < w[1]), "{all:?}");
        assert_eq!(Version::parse("0.11.2rc1"), Version::parse("0.11.2"));
        assert_eq!(format!("{} {}", all[0], all[3]), "b4567 0.11.2");
    }

    #[test]
    fn tags_of_images() {
        assert_eq!(Version::of_image("lmsysorg/sglang:v0.5.8-cu126"), Some(Version(0, 5, 8)));
        assert_eq!(Version::of_image("registry:5000/vllm@sha256:0"), None);
        assert_eq!(tag("registry:5000/vllm"), None);
        assert_eq!(tag("rocm/vllm-dev:nightly"), Some("nightly"));
    }
}
