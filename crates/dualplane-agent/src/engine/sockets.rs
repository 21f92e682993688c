//! Where the processes of a container listen, from `/proc/PID/net`: the network namespace of its pod, seen from the host.

use dualplane_base::order::Order as _;
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// Bytes of a table of sockets: those that listen stand before all connections.
const MAX_TABLE: u64 = 256 << 10;
/// Bytes of the routing trie: a host with thousands of routes has 1 MiB, its own addresses are spread over it.
const MAX_TRIE: u64 = 2 << 20;
/// Sockets that listen.
const MAX_LISTEN: usize = 256;
/// Descriptors of one process that are looked at.
const MAX_DESCRIPTORS: usize = 4096;

/// A socket that listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ListeningSocket {
    pub(super) address: IpAddr,
    pub(super) port: u16,
    pub(super) inode: u64,
}

/// Sockets that listen in the network namespace of a process.
pub(super) fn listening(proc_root: &Path, pid: u32) -> Vec<ListeningSocket> {
    let net = proc_root.join(pid.to_string()).join("net");
    let tables = ["tcp", "tcp6"].map(|f| bounded(&net.join(f), MAX_TABLE));
    let mut all: Vec<ListeningSocket> =
        tables.iter().flat_map(|t| t.lines().skip(1).filter_map(socket)).take(MAX_LISTEN).collect();
    all.order_by_key(|l| (l.port, l.address));
    all
}

/// `  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 21931 1 …`
fn socket(line: &str) -> Option<ListeningSocket> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let (address, port) = words.next()?.split_once(':')?;
    let state = words.nth(1)?;
    let inode = words.nth(5)?.parse().ok()?;
    if state != "0A" {
        return None;
    }
    Some(ListeningSocket { address: ip(address)?, port: u16::from_str_radix(port, 16).ok()?, inode })
}

/// The kernel prints each 32 bits as a number of the machine's byte order.
fn ip(hex: &str) -> Option<IpAddr> {
    let word = |i: usize| {
        let digits = hex.get(i * 8..i * 8 + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    match hex.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let mut octets = [0; 16];
            for (to, from) in octets.iter_mut().zip([word(0)?, word(1)?, word(2)?, word(3)?].concat()) {
                *to = from;
            }
            let six = Ipv6Addr::from(octets);
            Some(six.to_ipv4_mapped().map_or(IpAddr::V6(six), IpAddr::V4))
        }
        _ => None,
    }
}

/// Where a socket can be reached from here; `None` for one that only its own pod reaches.
pub(super) fn reach(listening: &ListeningSocket, home: &NetNamespace) -> Option<IpAddr> {
    let a = listening.address;
    if home.same {
        return Some(match a {
            IpAddr::V4(a) if a.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            // A socket on :: takes IPv4 too, unless it was told not to.
            IpAddr::V6(a) if a.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            _ => a,
        });
    }
    if a.is_loopback() {
        return None;
    }
    if !a.is_unspecified() {
        return Some(a);
    }
    let six = a.is_ipv6();
    home.addresses.iter().find(|h| !h.is_ipv6() || six).copied()
}

/// Addresses of a network namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NetNamespace {
    /// It is the namespace of this program.
    pub(super) same: bool,
    /// Its own addresses, IPv4 first, without loopback and link-local ones.
    pub(super) addresses: Vec<IpAddr>,
}

/// The network namespace of a process.
pub(super) fn home(proc_root: &Path, pid: u32) -> NetNamespace {
    let of = |root: &Path| bounded(&root.join("net/fib_trie"), MAX_TRIE);
    let dir = proc_root.join(pid.to_string());
    let own = Path::new("/proc/self");
    let trie = of(&dir);
    // The link needs rights over the process; the routes tell the same, as two namespaces do not share an address.
    let same = match (fs::read_link(dir.join("ns/net")), fs::read_link(own.join("ns/net"))) {
        (Ok(a), Ok(b)) => a == b,
        _ => !trie.is_empty() && trie == of(own),
    };
    if same {
        return NetNamespace { same, addresses: Vec::new() };
    }
    let mut addresses = local_v4(&trie);
    addresses.extend(local_v6(&bounded(&dir.join("net/if_inet6"), MAX_TABLE)));
    NetNamespace { same, addresses }
}

/// An address stands on one line of the trie, `/32 host LOCAL` below it says that it is the machine's own.
fn local_v4(trie: &str) -> Vec<IpAddr> {
    let mut last = None;
    let mut out = BTreeSet::new();
    for line in trie.lines() {
        let line = line.trim();
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse::<Ipv4Addr>().ok();
        } else if line == "/32 host LOCAL" {
            out.extend(last.filter(|a| !a.is_loopback() && !a.is_link_local()));
        }
    }
    out.into_iter().map(IpAddr::V4).collect()
}

/// `20010db8000000000000000000000005 02 40 00 80 eth0`: scope 00 is global.
fn local_v6(table: &str) -> Vec<IpAddr> {
    let one = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let address = u128::from_str_radix(words.next()?, 16).ok()?;
        (words.nth(2)? == "00").then(|| IpAddr::V6(Ipv6Addr::from_bits(address)))
    };
    table.lines().filter_map(one).collect()
}

/// Whether one of the processes holds the socket; `None` where no process' descriptors can be read.
pub(super) fn owned(proc_root: &Path, pids: &[u32], inode: u64) -> Option<bool> {
    let wanted = format!("socket:[{inode}]");
    let mut read = None;
    for pid in pids {
        let Ok(entries) = fs::read_dir(proc_root.join(pid.to_string()).join("fd")) else { continue };
        read = Some(false);
        let holds = |e: fs::DirEntry| fs::read_link(e.path()).is_ok_and(|l| l.as_os_str() == wanted.as_str());
        if entries.filter_map(Result::ok).take(MAX_DESCRIPTORS).any(holds) {
            return Some(true);
        }
    }
    read
}

fn bounded(path: &Path, most: u64) -> String {
    let mut bytes = Vec::new();
    if let Ok(f) = fs::File::open(path) {
        // What was read before an error is used.
        let _ = f.take(most).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn this_process_listens_and_owns_its_socket() {
        let me = std::process::id();
        let four = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = four.local_addr().unwrap().port();
        let root = Path::new("/proc");
        let found = listening(root, me).into_iter().find(|l| l.port == port).unwrap();
        assert_eq!(found.address, IpAddr::V4(Ipv4Addr::LOCALHOST));
        assert_eq!(owned(root, &[me], found.inode), Some(true));
        assert_eq!(owned(root, &[me], 1), Some(false));
        assert_eq!(owned(root, &[u32::MAX], found.inode), None);
        assert!(home(root, me).same);
        drop(four);
        assert!(listening(root, me).iter().all(|l| l.port != port), "what listens no more is gone");
    }

    #[test]
    fn a_pod_seen_from_the_host() {
        let d = tempfile::tempdir().unwrap();
        let net = d.path().join("41/net");
        fs::create_dir_all(&net).unwrap();
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
        let row = |local: &str, state: &str, inode: u64| {
            format!(
                "   0: {local} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000     0        0 {inode} 1 0 100 0 0 10 0\n"
            )
        };
        let tcp = format!(
            "{head}{}{}{}",
            row("00000000:1F40", "0A", 5),
            row("0100007F:22B8", "0A", 6),
            row("0502F40A:1F40", "01", 7)
        );
        fs::write(net.join("tcp"), tcp).unwrap();
        let six = format!("{head}{}garbage\n", row("00000000000000000000000000000000:7530", "0A", 8));
        fs::write(net.join("tcp6"), six).unwrap();
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n        |-- 10.244.2.5\n           /32 host LOCAL\n     |-- 127.0.0.1\n        /32 host LOCAL\n     |-- 10.244.2.255\n        /32 link BROADCAST\n";
        fs::write(net.join("fib_trie"), trie).unwrap();
        fs::write(
            net.join("if_inet6"),
            "fe800000000000000000000000000001 02 40 20 80 eth0\n20010db8000000000000000000000005 02 40 00 80 eth0\n",
        )
        .unwrap();
        let all = listening(d.path(), 41);
        assert_eq!(
            all.iter().map(|l| (l.port, l.inode)).collect::<Vec<_>>(),
            [(8000, 5), (8888, 6), (30000, 8)]
        );
        let h = home(d.path(), 41);
        let pod: IpAddr = "10.244.2.5".parse().unwrap();
        assert_eq!(h.addresses, [pod, "2001:db8::5".parse().unwrap()]);
        assert!(!h.same);
        assert_eq!(reach(&all[0], &h), Some(pod));
        assert_eq!(reach(&all[1], &h), None, "only the pod itself reaches its loopback");
        assert_eq!(reach(&all[2], &h), Some(pod));
        assert_eq!(home(d.path(), 42), NetNamespace::default());
    }
}
