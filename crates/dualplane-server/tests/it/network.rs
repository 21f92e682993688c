//! A network between the server and Postgres that is cut: connections that end, that fall silent, and answers that never come
//! back. Nothing acknowledged is lost, nothing is kept twice, and whoever asks meanwhile is told.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::faults::{Stop, held, storm};
use crate::harness::Server;

/// How the network is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Net {
    Whole,
    /// Questions arrive, answers do not.
    Deaf,
    /// Nothing arrives, and nobody is told.
    Silent,
    /// Connections end at once.
    Cut,
}

/// Carries bytes between the server and the socket of Postgres.
struct Wire {
    port: u16,
    net: Arc<AtomicU8>,
    open: Arc<Mutex<Vec<TcpStream>>>,
    ended: Arc<AtomicBool>,
}

fn carry(mut from: impl Read, mut to: impl Write, net: &AtomicU8, holds: &[Net], end: impl Fn()) {
    let mut buffer = [0; 16 << 10];
    loop {
        let n = match from.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(n) => n,
        };
        // What was on its way when the network fell silent arrives when it is whole again.
        while holds.iter().any(|h| *h as u8 == net.load(Ordering::SeqCst)) {
            std::thread::sleep(Duration::from_millis(2));
        }
        if net.load(Ordering::SeqCst) == Net::Cut as u8 || to.write_all(&buffer[..n]).is_err() {
            break;
        }
    }
    end();
}

impl Wire {
    fn to(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let it = Self {
            port: listener.local_addr().unwrap().port(),
            net: Arc::new(AtomicU8::new(Net::Whole as u8)),
            open: Arc::default(),
            ended: Arc::default(),
        };
        let (net, open, ended) = (Arc::clone(&it.net), Arc::clone(&it.open), Arc::clone(&it.ended));
        std::thread::spawn(move || {
            for near in listener.incoming() {
                let near = near.unwrap();
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                if net.load(Ordering::SeqCst) == Net::Cut as u8 {
                    continue;
                }
                let far = UnixStream::connect(&socket).unwrap();
                open.lock().unwrap().push(near.try_clone().unwrap());
                let both = || (near.try_clone().unwrap(), far.try_clone().unwrap());
                for back in [false, true] {
                    let (n, f) = both();
                    let (n2, f2) = both();
                    let net = Arc::clone(&net);
                    std::thread::spawn(move || {
                        let end = || {
                            let _ = (n2.shutdown(Shutdown::Both), f2.shutdown(Shutdown::Both));
                        };
                        match back {
                            false => carry(n, f, &net, &[Net::Silent], end),
                            true => carry(f, n, &net, &[Net::Silent, Net::Deaf], end),
                        }
                    });
                }
            }
        });
        it
    }

    fn is(&self, net: Net) {
        self.net.store(net as u8, Ordering::SeqCst);
        if net == Net::Cut {
            for c in self.open.lock().unwrap().drain(..) {
                let _ = c.shutdown(Shutdown::Both);
            }
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        self.is(Net::Cut);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

#[test]
fn what_was_acknowledged_over_a_network_that_is_cut_is_there_once() {
    let Some(database) = crate::postgres::Postgres::start() else { return };
    let direct = database.url("cut");
    let wire = Wire::to(database.folder().join(".s.PGSQL.5432"));
    let url = format!(
        "host=127.0.0.1 port={} user=dualplane dbname=postgres options='-c search_path=cut'",
        wire.port
    );
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(home.path(), &["--database-url", &url]);
    let stop = AtomicBool::new(false);
    let (acknowledged, told) = std::thread::scope(|scope| {
        let sending = scope.spawn(|| storm(&server, &stop, 1, 4));
        let end = Stop(&stop);
        let mut told = 0;
        for net in [Net::Silent, Net::Deaf, Net::Cut, Net::Deaf, Net::Cut] {
            std::thread::sleep(Duration::from_millis(300));
            wire.is(net);
            std::thread::sleep(Duration::from_millis(400));
            // Answers that were held back are lost: whoever waits for them does not know what was kept.
            wire.is(if net == Net::Silent { Net::Whole } else { Net::Cut });
            if net == Net::Cut {
                let page = server.get("/");
                let list = server.get("/v1/incidents");
                assert!(
                    page.status == 503 && page.text().contains("the database does not answer"),
                    "{}",
                    page.text()
                );
                assert_eq!((list.status, list.header("retry-after")), (503, "5"), "{}", list.text());
                told += 1;
            }
            wire.is(Net::Whole);
            let began = Instant::now();
            while server.get("/readyz").status != 200 {
                assert!(
                    began.elapsed() < Duration::from_secs(30),
                    "it does not find the database again after {net:?}"
                );
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        std::thread::sleep(Duration::from_millis(300));
        drop(end);
        (sending.join().unwrap(), told)
    });
    assert!(told == 2 && acknowledged.len() > 4, "{}", acknowledged.len());
    // `held` finds each once, and the counts are those of the list.
    let there = held(&server);
    let lost: Vec<&String> = acknowledged.difference(&there).collect();
    assert!(lost.is_empty(), "{} of {} lost: {lost:?}", lost.len(), acknowledged.len());
    // What another program finds by another way is the same.
    let other = Server::start(&home.path().join("other"), &["--database-url", &direct]);
    assert_eq!(held(&other), there);
}
