//! The driver against a small server of its own: what is sent arrives, what comes is timed, and what breaks is told.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use dualplane_gate::document::{Load, Run};
use dualplane_runs::{Gather, Sample, Setup};
use dualplane_shape::{Pattern, Play, Shape};

use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::planes::Reading;
use crate::{Api, Calibration, Ended, Target, Work, calibrate, drive};

/// How the server behaves.
#[derive(Clone, Copy)]
enum Mood {
    Well,
    /// Every fourth answer is a refusal.
    Busy,
    /// Cuts streams off after their second token.
    Cutting,
}

/// The server's own delays: time is what it is about.
#[allow(clippy::disallowed_methods)]
fn pause(time: Duration) {
    std::thread::sleep(time);
}

struct Small {
    at: String,
    asked: Arc<AtomicU64>,
    gone: Arc<AtomicU64>,
}

const FIRST: Duration = Duration::from_millis(60);
const NEXT: Duration = Duration::from_millis(15);

fn small(mood: Mood) -> Small {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("http://{}", listener.local_addr().unwrap());
    let (asked, gone) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (a, g) = (Arc::clone(&asked), Arc::clone(&gone));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (a, g) = (Arc::clone(&a), Arc::clone(&g));
            stream.set_nodelay(true).unwrap();
            std::thread::spawn(move || {
                if serve(stream, mood, &a).is_err() {
                    g.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    Small { at, asked, gone }
}

/// Serves a connection; an error where the client goes away within an answer.
fn serve(mut stream: impl Read + Write, mood: Mood, asked: &AtomicU64) -> std::io::Result<()> {
    loop {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            if stream.read(&mut byte)? == 0 {
                return Ok(());
            }
            head.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&head).to_lowercase();
        let length: usize =
            head.split("content-length: ").nth(1).unwrap().split('\r').next().unwrap().parse().unwrap();
        let mut body = vec![0; length];
        stream.read_exact(&mut body)?;
        let n = asked.fetch_add(1, Ordering::Relaxed);
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        if matches!(mood, Mood::Busy) && n % 4 == 3 {
            stream.write_all(
                b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            )?;
            return Ok(());
        }
        let prompt = body["messages"][0]["content"].as_str().unwrap();
        // Two tokens a word and twelve of a template.
        let input = prompt.split(' ').count() * 2 + 12;
        let output = body["max_tokens"].as_u64().unwrap();
        stream.write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        )?;
        let mut piece = |text: String| {
            let data = format!("data: {text}\n\n");
            stream.write_all(format!("{:x}\r\n{data}\r\n", data.len()).as_bytes())
        };
        piece(r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#.into())?;
        pause(FIRST);
        for i in 0..output {
            if i > 0 {
                pause(NEXT);
            }
            if i == 2 && matches!(mood, Mood::Cutting) {
                return Ok(());
            }
            piece(r#"{"choices":[{"delta":{"content":"x"}}]}"#.into())?;
        }
        piece(r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#.into())?;
        piece(format!(
            r#"{{"choices":[],"usage":{{"prompt_tokens":{input},"completion_tokens":{output}}}}}"#
        ))?;
        piece("[DONE]".into())?;
        stream.write_all(b"0\r\n\r\n")?;
    }
}

fn shape(more: &str) -> Shape {
    let text = format!(
        r#"{{"schema":"dualplane.shape/v1","requests":[{{"input":112,"output":5}}],"concurrency":4{more}}}"#
    );
    serde_json::from_str(&text).unwrap()
}

fn work(shape: Shape, seconds: f64) -> Work {
    Work {
        shape,
        seed: 7,
        play: Play::default(),
        closed: None,
        requests: None,
        warmup: 0.0,
        seconds,
        drain: 5.0,
        longest: None,
        calibration: Calibration { fixed: 12.0, per_word: 2.0 },
    }
}

fn go(server: &Small, work: &Work) -> (Run, Ended) {
    let target = Target::new(&server.at, Api::Chat, "m", None).unwrap();
    let clock = Instant::now();
    let gather =
        Gather::new(Setup { load: Load { mode: "test".into(), ..Load::default() }, ..Setup::default() });
    let (_to, mut readings) = channel();
    let stop = AtomicBool::new(false);
    let (gather, _, ended) = drive(target, work, gather, clock, &mut readings, &stop, &mut |_| {}).unwrap();
    (gather.finish(ended.at, ended.early), ended)
}

#[test]
fn an_open_loop_keeps_its_times_and_counts_what_comes() {
    let server = small(Mood::Well);
    let (run, ended) = go(&server, &work(shape(r#","arrival_per_second":30,"arrival":{"cv":0}"#), 2.0));
    let r = run.requests.unwrap();
    assert_eq!((r.sent, r.succeeded, r.failures()), (server.asked.load(Ordering::Relaxed), r.sent, 0));
    assert!((58..=60).contains(&r.sent), "{}", r.sent);
    let t = run.throughput.unwrap();
    assert!((t.input_tokens_per_second.unwrap() / t.requests_per_second.unwrap() - 112.0).abs() < 1e-6);
    let (ttft, itl) = (run.ttft.unwrap(), run.itl.unwrap());
    // A lower bound holds on any machine; how near it comes is measured in bench/driver.sh.
    assert!(ttft.p50 >= FIRST.as_secs_f64() && itl.p50 >= NEXT.as_secs_f64() * 0.99, "{ttft:?} {itl:?}");
    assert!(!ended.early && ended.held_back == 0);
}

#[test]
fn a_closed_loop_has_as_many_at_once_and_no_more() {
    let server = small(Mood::Well);
    let (run, _) = go(&server, &Work { closed: Some(3), requests: Some(12), ..work(shape(""), 60.0) });
    assert_eq!(run.requests.unwrap().succeeded, 12);
    // Twelve of 120 ms, three at once: at least four of them behind each other.
    assert!(run.measured_seconds >= 0.12 * 4.0 && run.measured_seconds < 20.0, "{}", run.measured_seconds);
}

#[test]
fn refusals_streams_that_end_early_and_nobody_there_are_told_apart() {
    let busy =
        go(&small(Mood::Busy), &Work { requests: Some(8), ..work(shape(""), 30.0) }).0.requests.unwrap();
    assert_eq!((busy.succeeded, busy.failed[0].reason.as_str(), busy.failures()), (6, "http 503", 2));
    let cut =
        go(&small(Mood::Cutting), &Work { requests: Some(4), ..work(shape(""), 30.0) }).0.requests.unwrap();
    assert_eq!((cut.succeeded, cut.failed[0].reason.as_str(), cut.failures()), (0, "cut off", 4));
    let nobody = Small { at: "http://127.0.0.1:1".into(), asked: Arc::default(), gone: Arc::default() };
    let none = go(&nobody, &Work { requests: Some(2), ..work(shape(""), 30.0) }).0.requests.unwrap();
    assert_eq!(none.failed[0].reason, "connection refused");
}

#[test]
fn clients_that_go_away_are_seen_by_the_server() {
    let server = small(Mood::Well);
    let play = Play { pattern: Pattern::CancelStorm { share: 1.0 }, ..Play::default() };
    let all = shape(r#","arrival_per_second":20,"cancelled":{"share":1.0,"after":0.5}"#);
    let (run, _) = go(&server, &Work { play, ..work(all, 1.5) });
    let r = run.requests.unwrap();
    assert!(r.cancelled > 10 && r.succeeded == 0, "{r:?}");
    pause(Duration::from_millis(300));
    assert!(server.gone.load(Ordering::Relaxed) > 5, "{}", server.gone.load(Ordering::Relaxed));
}

/// A certificate for 127.0.0.1 and its key, as openssl makes them.
fn certificate(folder: &std::path::Path) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test \
        -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE -keyout";
    let made = std::process::Command::new("openssl")
        .args(words.split_whitespace())
        .args([key.as_os_str(), "-out".as_ref(), cert.as_os_str()])
        .output()
        .expect("openssl");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let all = CertificateDer::pem_file_iter(&cert).unwrap().map(Result::unwrap).collect();
    (all, PrivateKeyDer::from_pem_file(&key).unwrap())
}

#[test]
fn an_encrypted_server_is_driven_where_its_certificate_is_trusted_and_only_there() {
    let folder = tempfile::tempdir().unwrap();
    let (certs, key) = certificate(folder.path());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = builder.unwrap().with_no_client_auth().with_single_cert(certs.clone(), key).unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            std::thread::spawn(move || {
                serve(rustls::StreamOwned::new(connection, stream), Mood::Well, &AtomicU64::new(0))
            });
        }
    });
    let work = Work { closed: Some(2), requests: Some(4), ..work(shape(""), 30.0) };
    let ask = |trusted: &[CertificateDer<'static>]| {
        let mut target = Target::new(&url, Api::Chat, "m", None).unwrap();
        target.encrypted = dualplane_wire::tls::Encrypted::trusting("127.0.0.1", trusted);
        let gather =
            Gather::new(Setup { load: Load { mode: "test".into(), ..Load::default() }, ..Setup::default() });
        let (_to, mut readings) = channel();
        let stop = AtomicBool::new(false);
        let (gather, _, ended) =
            drive(target, &work, gather, Instant::now(), &mut readings, &stop, &mut |_| {}).unwrap();
        gather.finish(ended.at, ended.early).requests.unwrap()
    };
    let r = ask(&certs);
    assert_eq!((r.succeeded, r.failures()), (4, 0), "{r:?}");
    let r = ask(&[]);
    assert!(r.succeeded == 0 && r.failed[0].reason.contains("not trusted"), "{r:?}");
}

#[test]
fn a_closed_loop_has_its_spike_as_well() {
    let server = small(Mood::Well);
    let play = Play { pattern: Pattern::CancelStorm { share: 1.0 }, seconds: Some(3.0), ..Play::default() };
    for more in ["", r#","arrival_per_second":500"#] {
        let (run, _) = go(&server, &Work { play, closed: Some(3), ..work(shape(more), 3.0) });
        let r = run.requests.unwrap();
        // Nobody goes away outside of a fifth of the time.
        assert!(r.cancelled > 3 && r.succeeded > r.cancelled && r.failures() == 0, "{r:?}");
    }
}

#[test]
fn words_are_calibrated_and_a_death_ends_the_run() {
    let server = small(Mood::Well);
    let target = Target::new(&server.at, Api::Chat, "m", None).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let local = tokio::task::LocalSet::new();
    let c = local.block_on(&runtime, calibrate(&target, Instant::now())).unwrap().unwrap();
    assert_eq!(c, Calibration { fixed: 12.0, per_word: 2.0 });
    let (to, mut readings) = channel();
    std::thread::spawn(move || {
        pause(Duration::from_millis(400));
        to.send(Reading::Sample(Box::new(Sample { at: 0.4, vram: Some(5), ..Sample::default() }))).unwrap();
        to.send(Reading::Dead).unwrap();
        pause(Duration::from_secs(5));
    });
    let stop = AtomicBool::new(false);
    let mut told = 0;
    let gather = Gather::new(Setup::default());
    let w = work(shape(r#","arrival_per_second":20"#), 60.0);
    let (gather, _, ended) =
        drive(target, &w, gather, Instant::now(), &mut readings, &stop, &mut |_| told += 1).unwrap();
    assert!(ended.early && ended.at < 20.0 && told > 1, "{ended:?}");
    let run = gather.finish(ended.at, ended.early);
    assert!(run.cut_short && run.vram.unwrap().peak_bytes == Some(5));
}
