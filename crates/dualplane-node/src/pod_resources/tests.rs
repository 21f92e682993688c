//! A server of our own on a real socket, speaking HTTP/2 frame by frame, so that it can also do what no server should.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use prost::Message as _;
use prost::bytes::Bytes;

use super::client::{DEADLINE, MAX_ANSWER};
use super::message::{Cdi, Claim, Claimed, Container, Devices, ListResponse, Pod};
use super::*;

const UUID: &str = "GPU-5fd4f087-86f3-7a43-b711-4771313afc50";

/// What the server does with a question.
enum Does {
    /// Answers a message, whole or not, then this status.
    Answers(Vec<u8>, u32),
    /// Refuses without a message, as a server does that has no such service.
    Refuses(u32, &'static str),
    /// Takes it and says nothing.
    Waits,
}

/// A message as gRPC frames it.
fn framed(length: u32, message: &[u8]) -> Vec<u8> {
    [&[0][..], &length.to_be_bytes(), message].concat()
}

fn whole(answer: &ListResponse) -> Does {
    let bytes = answer.encode_to_vec();
    Does::Answers(framed(bytes.len().try_into().unwrap(), &bytes), 0)
}

/// A socket with a server behind it, for as long as the folder lives.
fn serve(does: Does) -> (tempfile::TempDir, PathBuf) {
    let d = tempfile::tempdir().unwrap();
    let path = d.path().join("kubelet.sock");
    let listener = UnixListener::bind(&path).unwrap();
    listener.set_nonblocking(true).unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::UnixListener::from_std(listener).unwrap();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let _ = answer(stream, &does).await;
            }
        });
    });
    (d, path)
}

async fn answer(stream: tokio::net::UnixStream, does: &Does) -> Result<(), h2::Error> {
    let mut connection = h2::server::handshake(stream).await?;
    let mut open = Vec::new();
    while let Some(request) = connection.accept().await {
        let (request, mut respond) = request?;
        assert_eq!(request.uri().path(), "/v1.PodResourcesLister/List");
        assert_eq!(request.headers()["content-type"], "application/grpc");
        let head = http::Response::builder().header("content-type", "application/grpc");
        match does {
            Does::Waits => open.push(respond),
            Does::Refuses(status, why) => {
                let head = head.header("grpc-status", *status).header("grpc-message", *why);
                respond.send_response(head.body(()).unwrap(), true)?;
            }
            Does::Answers(bytes, status) => {
                let mut stream = respond.send_response(head.body(()).unwrap(), false)?;
                stream.send_data(Bytes::from(bytes.clone()), false)?;
                let mut trailers = http::HeaderMap::new();
                trailers.insert("grpc-status", (*status).into());
                stream.send_trailers(trailers)?;
            }
        }
    }
    Ok(())
}

fn devices(resource: &str, ids: &[&str]) -> Devices {
    Devices { resource: resource.into(), ids: ids.iter().map(|i| (*i).to_owned()).collect() }
}

fn answer_of(devices: Vec<Devices>, claimed: Vec<Claimed>) -> ListResponse {
    let claims = vec![Claim { resources: claimed }];
    let c = Container { name: "vllm".into(), devices, claims };
    let idle = Container { name: "proxy".into(), ..Container::default() };
    ListResponse {
        pods: vec![Pod { name: "llm-0".into(), namespace: "serving".into(), containers: vec![c, idle] }],
    }
}

fn ask(does: Does) -> Result<Vec<PodDevices>, KubeletGap> {
    let (_folder, path) = serve(does);
    list(&path)
}

#[test]
fn gpus_are_told_by_container_and_nothing_else_is() {
    let replica = format!("{UUID}::3");
    let plugged = vec![
        // A resource on two NUMA nodes is told twice.
        devices("nvidia.com/gpu.shared", &[&replica]),
        devices("example.com/nic", &["eth3"]),
        devices("nvidia.com/gpu.shared", &["GPU-2::0"]),
        devices("nvidia.com/mig-1g.10gb", &[]),
        devices("amd.com/gpu", &["0000:83:00.0"]),
    ];
    let cdi = |n: &str| vec![Cdi { name: n.into() }];
    let claimed = vec![
        Claimed {
            cdi: cdi("k8s.gpu.nvidia.com/claim=9-gpu-0"),
            driver: "gpu.nvidia.com".into(),
            pool: "node-1".into(),
            device: "gpu-0".into(),
        },
        Claimed { driver: "net.example.com".into(), device: "eth0".into(), ..Claimed::default() },
        Claimed { cdi: cdi("k8s.gpu.amd.com/claim=7"), ..Claimed::default() },
    ];
    let told = ask(whole(&answer_of(plugged, claimed))).unwrap();
    assert_eq!(told.len(), 1, "{told:?}");
    let c = &told[0];
    assert_eq!((c.namespace.as_str(), c.pod.as_str(), c.container.as_str()), ("serving", "llm-0", "vllm"));
    let all: Vec<(&str, Vec<&str>)> =
        c.devices.iter().map(|d| (d.resource.as_str(), d.ids.iter().map(String::as_str).collect())).collect();
    let expected = [
        ("nvidia.com/gpu.shared", vec![replica.as_str(), "GPU-2::0"]),
        ("amd.com/gpu", vec!["0000:83:00.0"]),
        ("gpu.nvidia.com", vec!["gpu.nvidia.com/node-1/gpu-0"]),
        ("k8s.gpu.amd.com", vec!["k8s.gpu.amd.com/claim=7"]),
    ];
    assert_eq!(all, expected);
    assert_eq!(ask(whole(&ListResponse::default())), Ok(Vec::new()), "an empty node");
}

#[test]
fn fields_of_later_versions_are_skipped() {
    let mut bytes = answer_of(vec![devices("nvidia.com/gpu", &[UUID])], Vec::new()).encode_to_vec();
    // Field 9, a varint; field 10, a text.
    bytes.extend([9 << 3, 0x96, 0x01, (10 << 3) | 2, 2, b'h', b'i']);
    let told = ask(Does::Answers(framed(bytes.len().try_into().unwrap(), &bytes), 0)).unwrap();
    assert_eq!(told[0].devices[0].ids, [UUID]);
}

#[test]
fn a_flood_is_bounded() {
    let ids: Vec<String> = (0..20_000).map(|i| format!("GPU-{i}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let long = "x".repeat(1 << 20);
    let told = ask(whole(&answer_of(
        vec![devices("nvidia.com/gpu", &[&long]), devices("nvidia.com/gpu", &ids)],
        Vec::new(),
    )))
    .unwrap();
    assert_eq!(told[0].devices[0].ids.len(), 8192);
    assert!(told[0].devices[0].ids.iter().all(|i| i.len() < 100));
}

#[test]
fn what_is_too_large_is_not_read() {
    let bytes = vec![0x0a; MAX_ANSWER + 1];
    let length = u32::try_from(bytes.len()).unwrap();
    assert_eq!(ask(Does::Answers(framed(length, &bytes), 0)), Err(KubeletGap::TooLarge(2)));
    // One that only says so: nothing of it need come.
    assert_eq!(ask(Does::Answers(framed(u32::MAX, b"x"), 0)), Err(KubeletGap::TooLarge(2)));
}

#[test]
fn a_socket_that_is_absent_or_dead_is_a_gap() {
    let d = tempfile::tempdir().unwrap();
    let path = d.path().join("kubelet.sock");
    assert_eq!(list(&path), Err(KubeletGap::NoSocket(path.display().to_string())));
    drop(UnixListener::bind(&path).unwrap());
    let dead = list(&path).unwrap_err();
    assert!(matches!(&dead, KubeletGap::Unreachable(why) if why.contains("refused")), "{dead}");
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "no socket").unwrap();
    assert!(matches!(list(&path), Err(KubeletGap::Unreachable(_))));
}

#[test]
fn a_server_that_never_answers_costs_two_seconds() {
    let from = Instant::now();
    assert_eq!(ask(Does::Waits), Err(KubeletGap::Silent(2)));
    assert!(from.elapsed() >= DEADLINE && from.elapsed() < DEADLINE * 4, "{:?}", from.elapsed());
    // Nor does one that takes the connection and never greets.
    let d = tempfile::tempdir().unwrap();
    let path = d.path().join("kubelet.sock");
    let _listener = UnixListener::bind(&path).unwrap();
    assert_eq!(list(&path), Err(KubeletGap::Silent(2)));
}

#[test]
fn refusals_and_garbage_are_gaps() {
    assert_eq!(ask(Does::Refuses(12, "unknown service v1.PodResourcesLister")), Err(KubeletGap::NoV1));
    let limited = ask(Does::Refuses(8, "rejected by rate limit%0A%1B"));
    let shown = limited.unwrap_err().to_string();
    assert!(shown.contains("rejected by rate limit") && !shown.contains(['\n', '\u{1b}']), "{shown}");
    // Not a message; a message that is cut off; no message at all.
    let garbage = framed(4, &[0xff; 4]);
    let cut = framed(100, &[0x0a; 4]);
    for bytes in [garbage, cut, Vec::new()] {
        let e = ask(Does::Answers(bytes, 0)).unwrap_err();
        assert!(matches!(e, KubeletGap::Unreachable(_)), "{e:?}");
    }
    // Another protocol.
    let d = tempfile::tempdir().unwrap();
    let path = d.path().join("kubelet.sock");
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 16]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let e = list(&path).unwrap_err();
    assert!(matches!(&e, KubeletGap::Unreachable(why) if !why.is_empty()), "{e:?}");
}

#[test]
fn the_thread_answers_when_it_is_there_and_is_asked_once_at_a_time() {
    let (_folder, path) = serve(whole(&answer_of(vec![devices("nvidia.com/gpu", &[UUID])], Vec::new())));
    let mut kubelet = PodResources::start(path).unwrap();
    assert!(kubelet.take().is_none(), "nobody asked");
    assert!(kubelet.ask());
    assert!(!kubelet.ask(), "the first question is open");
    let until = Instant::now() + Duration::from_secs(10);
    let answer = loop {
        if let Some(a) = kubelet.take() {
            break a;
        }
        assert!(Instant::now() < until);
        std::thread::yield_now();
    };
    assert_eq!(answer.told.unwrap()[0].container, "vllm");
    assert!(answer.span.to >= answer.span.from);
    assert!(kubelet.ask());
}
