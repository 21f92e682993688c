//! Archives and compressed files: each form judged like the plain directory, and hostile ones bounded.

use std::io::{Cursor, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use tar::{EntryType, Header};
use zip::write::SimpleFileOptions;

use crate::harness::{
    class, code, dir, dualplane, incidents_dir, run, run_stdin, stderr, stdout, triage_json,
};

const CUDA: &[u8] = b"INFO 04-11 17:01:13 [model_runner.py:1110] Starting to load model m...\n\
[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.25 GiB. GPU 0 has a total capacity of 15.60 GiB of which 700.88 MiB is free. Including non-PyTorch memory, this process has 14.91 GiB memory in use. Of the allocated memory 14.60 GiB is allocated by PyTorch, and 15.10 MiB is reserved by PyTorch but unallocated.\n";

type Files<'a> = Vec<(&'a str, &'a [u8])>;

fn header(name: &[u8], kind: EntryType, size: u64) -> Header {
    let mut h = Header::new_gnu();
    h.as_old_mut().name[..name.len()].copy_from_slice(name);
    h.set_entry_type(kind);
    h.set_size(size);
    h.set_mode(0o644);
    h.set_cksum();
    h
}

fn tar(files: &Files<'_>) -> Vec<u8> {
    let mut b = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        b.append(&header(name.as_bytes(), EntryType::Regular, bytes.len() as u64), *bytes).unwrap();
    }
    b.into_inner().unwrap()
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut e = GzEncoder::new(Vec::new(), Compression::fast());
    e.write_all(bytes).unwrap();
    e.finish().unwrap()
}

fn zst(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

fn zip(files: &Files<'_>) -> Vec<u8> {
    let mut w = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        w.start_file(*name, SimpleFileOptions::default()).unwrap();
        w.write_all(bytes).unwrap();
    }
    w.finish().unwrap().into_inner()
}

/// Verdict of one file of these bytes.
fn triage(name: &str, bytes: &[u8]) -> Value {
    let d = dir(&[(name, bytes)]);
    triage_json(&d.path().join(name))
}

fn gaps(v: &Value) -> String {
    v["missing"].as_array().unwrap().iter().map(|g| format!("{}: {}\n", g["what"], g["why"])).collect()
}

fn recorded(incident: &str, prefix: &str) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(incidents_dir().join(incident))
        .unwrap()
        .map(|e| e.unwrap().path())
        .map(|p| (format!("{prefix}{}", p.file_name().unwrap().to_str().unwrap()), std::fs::read(p).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn every_form_gives_the_verdict_of_the_plain_directory() {
    let incident = "real-k8s-pid1-oom";
    let plain = triage_json(&incidents_dir().join(incident));
    for prefix in ["", "./", "top/", "./top/"] {
        let files = recorded(incident, prefix);
        let files: Files<'_> = files.iter().map(|(n, b)| (n.as_str(), b.as_slice())).collect();
        let tar = tar(&files);
        for (suffix, bytes) in [
            ("tar.gz", gz(&tar)),
            ("tgz", gz(&tar)),
            ("tar.zst", zst(&tar)),
            ("zip", zip(&files)),
            ("tar", tar),
        ] {
            let packed = triage(&format!("{incident}.{suffix}"), &bytes);
            assert_eq!(packed, plain, "{prefix}{suffix}");
            // The bytes decide, not the name; and without a name.
            assert_eq!(triage(incident, &bytes), plain, "{prefix}{suffix} without its suffix");
            let o = run_stdin(&["triage", "-", "-o", "json"], &bytes);
            let mut v: Value = serde_json::from_slice(&o.stdout).unwrap();
            v["incident"] = plain["incident"].clone();
            assert_eq!(v, plain, "{prefix}{suffix} from standard input");
        }
    }
}

#[test]
fn compressed_files_are_named_without_their_suffix_and_keep_their_order() {
    for packed in [
        gz(CUDA),
        zst(CUDA),
        [gz(&CUDA[..80]), gz(&CUDA[80..])].concat(),
        [zst(&CUDA[..80]), zst(&CUDA[80..])].concat(),
    ] {
        let d = dir(&[
            ("server.log", b"INFO last\n"),
            ("server.log.1", b"RuntimeError: CUDA error: out of memory\n"),
            ("server.log.2.gz", &packed),
        ]);
        let v = triage_json(d.path());
        assert_eq!(v["trigger"]["file"], "server.log.2", "{v:#}");
        assert_eq!(v["trigger"]["line"], 2);
    }
    let v = triage("server.log.gz", &gz(CUDA));
    assert_eq!((class(&v), v["trigger"]["file"].as_str()), ("cuda_oom_load", Some("server.log")));
}

#[test]
fn archives_inside_a_directory_and_of_several_incidents() {
    let (one, two) =
        (gz(&tar(&vec![("previous.log", CUDA)])), zip(&vec![("x/current.log", b"INFO fine\n".as_slice())]));
    let d = dir(&[("one.tar.gz", &one), ("two.zip", &two)]);
    let names = |v: &Value| -> Vec<String> {
        v["items"].as_array().unwrap().iter().map(|i| i["incident"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&triage_json(d.path())), ["one", "two"]);
    let both = tar(&vec![("all/one/previous.log", CUDA), ("all/two/current.log", b"INFO fine\n")]);
    assert_eq!(names(&triage("all.tar", &both)), ["one", "two"]);
    // With files beside it, an archive is a part of the incident.
    let d = dir(&[("pod.log", b"INFO fine\n"), ("logs.tar.gz", &one)]);
    assert_eq!(triage_json(d.path())["trigger"]["file"], "logs/previous.log");
    // Unpacked beside its archive.
    let d = dir(&[("one/previous.log", CUDA), ("one.tar.gz", &one), ("one.tgz", &one)]);
    assert_eq!(names(&triage_json(d.path())), ["one", "one.tar.gz", "one.tgz"]);
}

const PODS: &str = r#"{"kind":"PodList","apiVersion":"v1","items":[
 {"metadata":{"name":"llm-0","namespace":"serving"},"spec":{"containers":[{"name":"server","image":"vllm/vllm-openai:v0.11.2","resources":{"limits":{"memory":"64Gi"}}}]},
  "status":{"phase":"Running","containerStatuses":[{"name":"server","restartCount":1,"state":{"running":{}},"lastState":{"terminated":{"exitCode":1,"reason":"Error"}}}]}},
 {"metadata":{"name":"llm-1","namespace":"serving"},"spec":{"containers":[{"name":"server"}]},
  "status":{"phase":"Running","containerStatuses":[{"name":"server","restartCount":0,"state":{"running":{}}}]}}]}"#;

/// Two pods of one name; the one in `batch` was killed.
fn other_namespace() -> String {
    PODS.replace("serving", "batch")
        .replace(r#""exitCode":1,"reason":"Error""#, r#""exitCode":137,"reason":"OOMKilled""#)
}

fn judged(target: &Path) -> Vec<(String, String, String)> {
    let v = triage_json(target);
    let items = v["items"].as_array().cloned().unwrap_or_else(|| vec![v.clone()]);
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    items
        .iter()
        .map(|i| (text(&i["subject"]["namespace"]), class(i).to_owned(), text(&i["trigger"]["file"])))
        .collect()
}

#[test]
fn a_cluster_dump_is_one_pile_with_logs_at_their_pods() {
    let batch = other_namespace();
    let d = dir(&[
        ("serving/pods.json", PODS.as_bytes()),
        ("serving/events.json", br#"{"kind":"EventList","apiVersion":"v1","items":[]}"#),
        ("serving/llm-0/logs.txt", CUDA),
        ("serving/llm-1/logs.txt", b"RuntimeError: CUDA error: out of memory\n"),
        ("batch/pods.json", batch.as_bytes()),
        ("batch/llm-0/logs.txt", b"INFO fine\n"),
    ]);
    let want = [("batch", "host_oom_killed", ""), ("serving", "cuda_oom_load", "serving/llm-0/logs.txt")];
    let want = want.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()));
    assert_eq!(judged(d.path()), want);
    std::fs::write(d.path().join("nodes.json"), r#"{"kind":"NodeList","apiVersion":"v1","items":[]}"#)
        .unwrap();
    assert_eq!(judged(d.path()), want);
}

#[test]
fn a_support_bundle_is_one_pile_with_logs_at_their_pods() {
    let batch = other_namespace();
    let top = "support-bundle-2026-09-03T02_10_49";
    let files: Vec<(String, &[u8])> = [
        ("version.yaml", b"apiVersion: troubleshoot.sh/v1beta2\nkind: SupportBundle\nspec: {}\n".as_slice()),
        ("cluster-resources/pods/serving.json", PODS.as_bytes()),
        ("cluster-resources/pods/batch.json", batch.as_bytes()),
        ("cluster-resources/pods/logs/serving/llm-0/server.log", b"INFO fine\n"),
        ("cluster-resources/pods/logs/serving/llm-0/server-previous.log", CUDA),
        ("cluster-resources/pods/logs/batch/llm-0/server-previous.log", b"INFO fine\n"),
        ("cluster-info/cluster_version.json", b"{}"),
    ]
    .map(|(n, b)| (format!("{top}/{n}"), b))
    .to_vec();
    let files: Files<'_> = files.iter().map(|(n, b)| (n.as_str(), *b)).collect();
    let want: Vec<_> = [
        ("batch", "host_oom_killed", ""),
        ("serving", "cuda_oom_load", "cluster-resources/pods/logs/serving/llm-0/server-previous.log"),
    ]
    .map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()))
    .to_vec();
    let d = dir(&[("bundle.tar.gz", &gz(&tar(&files)))]);
    assert_eq!(judged(&d.path().join("bundle.tar.gz")), want);
    let d = dir(&files);
    assert_eq!(judged(&d.path().join(top)), want);
}

#[test]
fn names_that_lead_out_links_and_devices_are_told_and_do_no_harm() {
    let mut b = tar::Builder::new(Vec::new());
    let mut add = |name: &[u8], kind: EntryType, link: &str, bytes: &[u8]| {
        let mut h = header(name, kind, bytes.len() as u64);
        if !link.is_empty() {
            h.set_link_name(link).unwrap();
        }
        h.set_cksum();
        b.append(&h, bytes).unwrap();
    };
    add(b"../../escape.log", EntryType::Regular, "", CUDA);
    add(b"/abs.log", EntryType::Regular, "", b"INFO a\n");
    add(b"C:/drive.log", EntryType::Regular, "", b"INFO b\n");
    add(b"passwd", EntryType::Symlink, "/etc/passwd", b"");
    add(b"shadow", EntryType::Link, "/etc/shadow", b"");
    add(b"zero", EntryType::Char, "", b"");
    add(b"sda", EntryType::Block, "", b"");
    add(b"pipe", EntryType::Fifo, "", b"");
    add(b"same.log", EntryType::Regular, "", b"INFO 1\n");
    add(b"same.log", EntryType::Regular, "", b"INFO 2\n");
    let d = dir(&[("in/evil.tar", &b.into_inner().unwrap())]);
    let v = triage_json(&d.path().join("in/evil.tar"));
    assert_eq!(v["trigger"]["file"], "escape.log");
    let text = gaps(&v);
    for want in [
        "outside the archive",
        "absolute",
        "drive letter",
        "passwd\": \"it is a link",
        "shadow\": \"it is a link",
        "zero\": \"it is a device",
        "sda\": \"it is a device",
        "pipe\": \"it is a named pipe",
    ] {
        assert!(text.contains(want), "{want}: {text}");
    }
    let files = v["evidence"]["files"].to_string() + &v.to_string();
    assert!(files.contains("2/same.log"), "{v:#}");
    assert_eq!(std::fs::read_dir(d.path()).unwrap().count(), 1, "something was written");
    // The same in a zip, whose directory is a place for lies too.
    let mut w = zip::ZipWriter::new(Cursor::new(Vec::new()));
    w.start_file("..\\..\\win.log", SimpleFileOptions::default()).unwrap();
    w.write_all(CUDA).unwrap();
    w.add_symlink("ln", "/etc/passwd", SimpleFileOptions::default()).unwrap();
    let v = triage("evil.zip", &w.finish().unwrap().into_inner());
    assert_eq!(v["trigger"]["file"], "win.log");
    assert!(
        gaps(&v).contains("outside the archive") && gaps(&v).contains("ln\": \"it is a link"),
        "{}",
        gaps(&v)
    );
}

#[test]
fn what_can_be_read_of_a_broken_archive_is_used() {
    let filler = b"INFO 02-25 10:01:10 nothing to see\n".repeat(2000);
    let files: Files<'_> = vec![("a.log", CUDA), ("b.log", &filler), ("c.log", b"INFO x\n")];
    let (t, z) = (tar(&files), zip(&files));
    let cut = |b: &[u8], at: usize| b[..at].to_vec();
    let flip = |b: &[u8], at: usize| {
        let mut b = b.to_vec();
        b[at] ^= 0x55;
        b
    };
    let big = gz(&tar(&vec![("a.log", CUDA), ("b.log", &noise(300_000))]));
    let zbig = zst(&tar(&vec![("a.log", CUDA), ("b.log", &noise(300_000))]));
    let deflated = z.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
    for (what, bytes, want) in [
        ("tar cut in an entry", cut(&t, 4000), "ends inside an entry"),
        ("tar cut in a header", cut(&t, 1024 + 100), "ends inside a header"),
        ("tar cut between entries", cut(&t, 1024), "end marker"),
        ("tar with a damaged header", flip(&t, 1024 + 3), "byte 1024 is damaged"),
        ("tar.gz cut", cut(&big, big.len() / 2), "truncated after"),
        ("tar.gz with a wrong checksum", flip(&big, big.len() - 6), "checksum"),
        ("tar.zst cut", cut(&zbig, zbig.len() * 3 / 4), "truncated after"),
        ("tar.zst with a wrong checksum", flip(&zbig, zbig.len() - 2), "checksum"),
        ("zip without its directory", cut(&z, deflated), "central directory is missing"),
        ("zip whose first entry is damaged", zip_damaged(), "checksum does not match"),
        ("streamed zip without its directory", streamed_zip(), "central directory is missing"),
        ("gz cut", cut(&gz(CUDA), gz(CUDA).len() - 4), "truncated after"),
        ("gz with rubbish behind it", [gz(CUDA), b"rubbish".to_vec()].concat(), "truncated after"),
        ("zst cut", cut(&zst(CUDA), zst(CUDA).len() - 3), "truncated after"),
    ] {
        let d = dir(&[("x", &bytes)]);
        let v = triage_json(&d.path().join("x"));
        assert_eq!(class(&v), "cuda_oom_load", "{what}: {v:#}");
        assert!(gaps(&v).contains(want), "{what}: {}", gaps(&v));
    }
}
/// A stored entry that was changed behind its checksum.
fn zip_damaged() -> Vec<u8> {
    let mut w = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    w.start_file("a.log", stored).unwrap();
    w.write_all(CUDA).unwrap();
    let mut bytes = w.finish().unwrap().into_inner();
    bytes[40] ^= 0x55;
    bytes
}

/// Written to a pipe, sizes stand behind the entries; the log that matters is the second.
fn streamed_zip() -> Vec<u8> {
    let mut w = zip::ZipWriter::new_stream(Vec::new());
    for (name, bytes) in [("0.log", b"INFO x\n".as_slice()), ("1.log", CUDA), ("2.log", b"INFO y\n")] {
        w.start_file(name, SimpleFileOptions::default()).unwrap();
        w.write_all(bytes).unwrap();
    }
    let bytes = w.finish().unwrap().into_inner();
    let directory = bytes.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
    bytes[..directory].to_vec()
}

/// Bytes that do not compress, as lines.
fn noise(n: u32) -> Vec<u8> {
    let mut x = 1u32;
    (0..n)
        .map(|i| {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if i % 80 == 79 { b'\n' } else { b'a' + (x >> 24) as u8 % 26 }
        })
        .collect()
}

#[test]
fn one_archive_in_an_archive_is_read_and_no_deeper() {
    let leaf = tar(&vec![("previous.log", CUDA)]);
    let one = tar(&vec![("node.tar.gz", &gz(&leaf)), ("x.log", b"INFO x\n")]);
    assert_eq!(triage("t.tar", &one)["trigger"]["file"], "node/previous.log");
    let zipped = zip(&vec![("node.zip", &zip(&vec![("previous.log", CUDA)])), ("x.log", b"INFO x\n")]);
    assert_eq!(triage("t.zip", &zipped)["trigger"]["file"], "node/previous.log");
    let two = tar(&vec![("mid.tar", &one), ("y.log", CUDA)]);
    let v = triage("t.tar", &two);
    assert!(
        gaps(&v).contains("mid/node.tar.gz")
            && gaps(&v).contains(
                "nested more than one archive \
    deep"
            ),
        "{}",
        gaps(&v)
    );
    let v = triage("t.tar", &tar(&vec![("a.log.gz", &gz(&gz(CUDA))), ("y.log", CUDA)]));
    assert!(gaps(&v).contains("compressed twice"), "{}", gaps(&v));
    let v = triage("t.tar", &tar(&vec![("a.log.xz", b"\xfd7zXZ\0\0\0".as_slice()), ("y.log", CUDA)]));
    assert!(gaps(&v).contains("compressed with xz"), "{}", gaps(&v));
}

/// Limits the address space of the child: holding a bomb would end it.
fn bounded(bytes: &[u8]) -> (Value, Duration) {
    let d = dir(&[("bomb", bytes)]);
    let start = Instant::now();
    let o = std::process::Command::new("sh")
        .args(["-c", "ulimit -v 600000; exec \"$0\" triage \"$1\" -o json", env!("CARGO_BIN_EXE_dualplane")])
        .arg(d.path().join("bomb"))
        .output()
        .unwrap();
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    (serde_json::from_slice(&o.stdout).unwrap(), start.elapsed())
}

#[test]
fn bombs_are_bounded() {
    let zeros = vec![0u8; 1 << 20];
    // 1 GiB in one entry, after a log that is used.
    let mut e = GzEncoder::new(Vec::new(), Compression::fast());
    e.write_all(&tar(&vec![("a.log", CUDA)])[..1024]).unwrap();
    e.write_all(header(b"zeros", EntryType::Regular, 1 << 30).as_bytes()).unwrap();
    for _ in 0..1024 {
        e.write_all(&zeros).unwrap();
    }
    e.write_all(&[0; 1024]).unwrap();
    let (v, took) = bounded(&e.finish().unwrap());
    assert_eq!(class(&v), "cuda_oom_load");
    assert!(gaps(&v).contains("looks binary"), "{}", gaps(&v));
    assert!(took < Duration::from_secs(60), "{took:?}");
    let mut w = zip::ZipWriter::new(Cursor::new(Vec::new()));
    w.start_file("a.log", SimpleFileOptions::default()).unwrap();
    w.write_all(CUDA).unwrap();
    w.start_file("zeros", SimpleFileOptions::default()).unwrap();
    for _ in 0..1024 {
        w.write_all(&zeros).unwrap();
    }
    let (v, took) = bounded(&w.finish().unwrap().into_inner());
    assert_eq!(class(&v), "cuda_oom_load");
    assert!(gaps(&v).contains("looks binary"), "{}", gaps(&v));
    assert!(took < Duration::from_secs(60), "{took:?}");
    // Declared sizes are not believed: nothing behind them, and a name of 1 GiB.
    for kind in [EntryType::Regular, EntryType::GNULongName, EntryType::XHeader] {
        let mut t = tar(&vec![("a.log", CUDA)])[..1024].to_vec();
        t.extend_from_slice(header(b"big", kind, 1 << 60).as_bytes());
        t.extend_from_slice(&[b'x'; 4096]);
        let (v, _) = bounded(&t);
        assert_eq!(class(&v), "cuda_oom_load");
        assert!(gaps(&v).contains("ends inside an entry"), "{}", gaps(&v));
    }
}

#[test]
fn many_entries_are_bounded() {
    let mut t = tar(&vec![("a.log", CUDA)])[..1024].to_vec();
    for _ in 0..12_000 {
        t.extend_from_slice(header(b"same", EntryType::Regular, 0).as_bytes());
    }
    let (v, took) = bounded(&gz(&t));
    assert_eq!(class(&v), "cuda_oom_load");
    assert!(gaps(&v).contains("more than 10000 files"), "{}", gaps(&v));
    assert!(took < Duration::from_secs(60), "{took:?}");
}

#[cfg(unix)]
#[test]
fn pipes_sockets_and_devices_are_named_and_never_waited_for() {
    let d = dir(&[]);
    let pipe = d.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let socket = d.path().join("socket");
    let _held = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    for (path, what) in
        [(pipe.as_path(), "a named pipe"), (&socket, "a socket"), (Path::new("/dev/zero"), "a device")]
    {
        let o = run(&["triage", path.to_str().unwrap()]);
        assert_eq!(code(&o), 3);
        assert!(stderr(&o).contains(what) && stderr(&o).contains("standard input"), "{}", stderr(&o));
    }
    // What the shell has opened is like standard input.
    let mut child = dualplane()
        .args(["triage", "/dev/stdin"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&gz(CUDA)).unwrap();
    assert!(stdout(&child.wait_with_output().unwrap()).contains("cuda_oom_load"));
}
