//! `dualplane incidents … --server`: against answers as `dualplane-server` gives them. `e2e/server/run` asks the real one.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::harness::{code, dir, run, stderr, stdout};

const LOG: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 1.00 GiB is free.\n";

fn incident(n: usize) -> Value {
    // What a sender wrote may hold what a terminal would obey.
    json!({"id": format!("i{n}"), "died_at": "2026-11-20T10:05:00.000Z", "cluster": "k", "namespace": "serving", "pod": format!("llm\u{1b}[2J-{n}"),
        "class": "cuda_oom_runtime", "occurrences": n + 1, "model": "m"})
}

/// Three incidents, two to a page; the first with a bundle. A token is asked for.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let path = lines.next().and_then(|l| l.split(' ').nth(1).map(str::to_owned)).unwrap_or_default();
            let head: Vec<String> = lines.take_while(|l| !l.is_empty()).collect();
            let may = head.iter().any(|h| h.ends_with("Bearer s3cret"));
            let problem = |detail: &str| json!({"detail": detail}).to_string();
            let (status, body) = match path.as_str() {
                _ if !may => ("401 Unauthorized", problem("send a token")),
                p if p.starts_with("/v1/incidents?") && p.contains("nothing=1") => {
                    ("400 Bad Request", problem("no filter is called \"nothing\""))
                }
                p if p.starts_with("/v1/incidents?") && p.contains("after=c2") => {
                    ("200 OK", json!({"items": [incident(2)]}).to_string())
                }
                p if p.starts_with("/v1/incidents?") => {
                    let all = [incident(0), incident(1)];
                    let some = if p.contains("limit=1") { &all[..1] } else { &all[..] };
                    ("200 OK", json!({"items": some, "next": "c2"}).to_string())
                }
                "/v1/incidents/i0" | "/v1/incidents/i1" => ("200 OK", incident(0).to_string()),
                "/v1/incidents/i0/bundle" => ("200 OK", LOG.to_owned()),
                "/v1/incidents/i0/report" => {
                    ("200 OK", json!({"schema": "dualplane.verdict/v2"}).to_string())
                }
                "/incidents/i1.md" => ("200 OK", "# VRAM ran out\n\u{1b}]0;x\u{7}by hand\n".to_owned()),
                _ => ("404 Not Found", problem("there is no such incident, or it is not yours to see")),
            };
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    format!("http://{at}")
}

#[test]
fn a_fleet_is_listed_shown_and_exported() {
    let d = dir(&[("token", b"s3cret\n")]);
    let token = d.path().join("token");
    let url = server();
    let ask = |words: &[&str]| {
        let mut args = vec!["incidents"];
        args.extend(words);
        args.extend(["--server", &url, "--server-token", token.to_str().unwrap()]);
        run(&args)
    };
    let o = ask(&["ls", "-n", "serving", "--filter", "class=cuda_oom_runtime"]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let text = stdout(&o);
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(text.contains("k/serving/llm") && text.contains("i2") && !text.contains('\u{1b}'), "{text}");
    let o = ask(&["ls", "--limit", "2"]);
    assert!(stdout(&o).lines().count() == 3 && stderr(&o).contains("--limit shows more"), "{}", stderr(&o));
    let list: Value = serde_json::from_str(&stdout(&ask(&["ls", "-o", "json"]))).unwrap();
    assert_eq!(
        (&list["schema"], list["items"].as_array().unwrap().len()),
        (&json!("dualplane.fleet-incidents/v1"), 3)
    );
    for id in ["last", "i0"] {
        let o = ask(&["show", id]);
        assert!(stdout(&o).contains("VRAM") && stdout(&o).contains("GPU 0"), "{}{}", stdout(&o), stderr(&o));
    }
    let report: Value = serde_json::from_str(&stdout(&ask(&["show", "i0", "-o", "json"]))).unwrap();
    assert_eq!(report["schema"], "dualplane.verdict/v2");
    // Without a bundle: the server's own note.
    let o = ask(&["show", "i1"]);
    assert!(stdout(&o).contains("# VRAM ran out") && !stdout(&o).contains('\u{1b}'), "{}", stdout(&o));
    assert_eq!(stdout(&ask(&["export", "i0", "--out", "-"])), LOG);
    let out = d.path().join("x.log");
    assert_eq!(code(&ask(&["export", "i0", "--out", out.to_str().unwrap()])), 0);
    assert_eq!(std::fs::read_to_string(out).unwrap(), LOG);
    for (words, exit, why) in [
        (&["show", "nothing"][..], 4, "names no incident"),
        (&["show", "../../etc/passwd"], 4, "names no incident"),
        (&["export", "i1"], 3, "came without a bundle"),
        (&["ls", "--filter", "nothing=1"], 2, "no filter is called"),
        (&["ls", "--filter", "nothing"], 2, "KEY=VALUE"),
        (&["ls", "--all"], 2, "cannot be used with"),
    ] {
        let o = ask(words);
        assert!(code(&o) == exit && stderr(&o).contains(why), "{words:?}: {} {}", code(&o), stderr(&o));
    }
}

#[test]
fn a_token_stands_in_a_file_and_goes_nowhere_in_the_clear() {
    let d = dir(&[("token", b"s3cret\n"), ("wrong", b"wrong\n"), ("empty", b"")]);
    let file = |name: &str| d.path().join(name).to_str().unwrap().to_owned();
    let url = server();
    for (url, token, why) in [
        (url.as_str(), None, "name its file in --server-token"),
        (&url, Some("wrong"), "does not know the token"),
        (&url, Some("empty"), "the file is empty"),
        ("http://fleet.example", Some("token"), "use https"),
        ("http://me:x@127.0.0.1", None, "a password in a URL"),
        ("fleet.example", None, "is no URL"),
        ("http://127.0.0.1:1", None, "http://127.0.0.1:1"),
    ] {
        let mut args = vec!["incidents", "ls", "--server", url];
        let token = token.map(file);
        args.extend(token.iter().flat_map(|t| ["--server-token", t]));
        let o = run(&args);
        assert!(code(&o) != 0 && stderr(&o).contains(why), "{url}: {}", stderr(&o));
        assert!(!stderr(&o).contains("s3cret"));
    }
}
