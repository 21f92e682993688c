//! Where a message may be sent. An address of a configuration may lead into the network that the server stands in, by a name
//! that changes its mind, and then whoever may write the configuration reads what the server can reach.
//!
//! The sender asks for each address of a name, connects to one that was allowed, and follows no redirect.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Not `https`, and not allowed by name.
    #[error(
        "only https is sent to, as the message names workloads: write https:// or allow this host in the configuration"
    )]
    Scheme,
    /// A user or password stands in it.
    #[error("an address must not hold a user or a password: give the secret by a file")]
    Credentials,
    /// It has no host.
    #[error("the address has no host")]
    Host,
    /// It leads inside.
    #[error(
        "{0} is an address of this machine or its network ({1}): allow the host in the configuration if that is meant"
    )]
    Inside(IpAddr, &'static str),
}

/// The host and the port of an address that may be asked for; `allowed` are hosts that the configuration names.
///
/// # Errors
/// Why not.
pub fn host<'a>(url: &'a str, allowed: &[String]) -> Result<(&'a str, u16), Refused> {
    let (scheme, rest) = url.split_once("://").ok_or(Refused::Scheme)?;
    if !matches!(scheme, "https" | "http") {
        return Err(Refused::Scheme);
    }
    // Where readers of addresses disagree, like on a backslash, one of them would be led elsewhere.
    if rest.contains('\\') || !rest.chars().all(|c| c.is_ascii_graphic()) {
        return Err(Refused::Host);
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err(Refused::Credentials);
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(v6) => {
            let (host, port) = v6.split_once(']').ok_or(Refused::Host)?;
            (host, port.strip_prefix(':'))
        }
        None => match authority.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':');
    if host.is_empty() || !host.chars().all(fits) {
        return Err(Refused::Host);
    }
    let port = match port {
        Some(p) => p.parse().ok().filter(|p: &u16| *p != 0).ok_or(Refused::Host)?,
        None if scheme == "http" => 80,
        None => 443,
    };
    match scheme {
        "https" => Ok((host, port)),
        "http" if is_allowed(host, allowed) => Ok((host, port)),
        _ => Err(Refused::Scheme),
    }
}

/// The configuration names this host.
#[must_use]
pub fn is_allowed(host: &str, allowed: &[String]) -> bool {
    allowed.iter().any(|a| a.eq_ignore_ascii_case(host))
}

/// Whether an address that a name led to lies outside.
///
/// # Errors
/// Where it is of this machine, its network, or of nobody.
pub fn outside(ip: IpAddr) -> Result<(), Refused> {
    let why = match ip {
        IpAddr::V4(v4) => inside_v4(v4),
        IpAddr::V6(v6) => inside_v6(v6),
    };
    why.map_or(Ok(()), |why| Err(Refused::Inside(ip, why)))
}

fn inside_v4(ip: Ipv4Addr) -> Option<&'static str> {
    let [a, b, c, _] = ip.octets();
    Some(match (a, b, c) {
        (0, ..) => "of this network",
        (127, ..) => "loopback",
        (10, ..) | (192, 168, _) => "private",
        (172, 16..=31, _) => "private",
        (100, 64..=127, _) => "shared by a carrier",
        (169, 254, _) => "link-local: the metadata of a cloud",
        (192, 0, 0) => "reserved",
        (192, 0, 2) | (198, 51, 100) | (203, 0, 113) => "for documentation",
        (198, 18..=19, _) => "for benchmarks",
        (224..=239, ..) => "multicast",
        (240.., ..) => "reserved",
        _ => return None,
    })
}

fn inside_v6(ip: Ipv6Addr) -> Option<&'static str> {
    // An IPv4 address in another coat: mapped, translated (NAT64), 6to4.
    let [s0, s1, s2, s3, s4, s5, s6, s7] = ip.segments();
    let v4 = |hi: u16, lo: u16| {
        let [a, b] = hi.to_be_bytes();
        let [c, d] = lo.to_be_bytes();
        Ipv4Addr::new(a, b, c, d)
    };
    match (s0, s1, s2, s3, s4, s5) {
        (0, 0, 0, 0, 0, 0) if s6 == 0 && s7 == 1 => Some("loopback"),
        (0, 0, 0, 0, 0, 0) => Some("unspecified or of IPv4"),
        (0, 0, 0, 0, 0, 0xffff) => inside_v4(v4(s6, s7)),
        (0x64, 0xff9b, ..) => inside_v4(v4(s6, s7)).or(Some("translated")),
        (0x2002, ..) => inside_v4(v4(s1, s2)),
        (0x2001, 0, ..) => Some("a tunnel"),
        (0x2001, 0xdb8, ..) => Some("for documentation"),
        (0x100, 0, 0, 0, ..) => Some("discarded"),
        _ => match s0 {
            0xfc00..=0xfdff => Some("private"),
            0xfe80..=0xfebf => Some("link-local"),
            0xfec0..=0xfeff => Some("site-local"),
            0xff00.. => Some("multicast"),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_inside_are_refused_in_every_coat() {
        for inside in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "ff02::1",
            "::7f00:1",
            "2001::1",
        ] {
            assert!(outside(inside.parse().unwrap()).is_err(), "{inside}");
        }
        for good in ["1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:1.1.1.1"] {
            assert_eq!(outside(good.parse().unwrap()), Ok(()), "{good}");
        }
    }

    #[test]
    fn an_address_is_read_as_those_read_it_that_connect() {
        let allowed = vec!["alertmanager.monitoring".to_owned()];
        assert_eq!(host("https://hooks.slack.com/services/T/B/x", &[]), Ok(("hooks.slack.com", 443)));
        assert_eq!(
            host("http://alertmanager.monitoring:9093/api", &allowed),
            Ok(("alertmanager.monitoring", 9093))
        );
        assert_eq!(host("https://[::1]:8443/", &[]), Ok(("::1", 8443)));
        for (bad, why) in [
            ("http://hooks.slack.com/", Refused::Scheme),
            ("file:///etc/passwd", Refused::Scheme),
            ("gopher://x/", Refused::Scheme),
            ("hooks.slack.com", Refused::Scheme),
            ("https://good.example@127.0.0.1/", Refused::Credentials),
            ("https://good.example\\@127.0.0.1/", Refused::Host),
            ("https:///x", Refused::Host),
            ("https://a b/", Refused::Host),
            ("https://a:0/", Refused::Host),
            ("https://a:99999/", Refused::Host),
            ("https://[::1/", Refused::Host),
        ] {
            let told = host(bad, &[]);
            assert_eq!(told, Err(why), "{bad}");
        }
    }
}
