//! The pages of the real program: a crawl from the first page, whoever may see what, and what a browser is told.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::harness::{Server, program};

/// Addresses below the server that a page leads to.
fn links(page: &str) -> Vec<String> {
    let mut out = Vec::new();
    for attribute in ["href=\"", "src=\"", "action=\""] {
        for part in page.split(attribute).skip(1) {
            let link = part.split('"').next().unwrap().replace("&amp;", "&").replace("&#39;", "'");
            if link.starts_with('/') {
                out.push(link.split('#').next().unwrap().to_owned());
            }
        }
    }
    out
}

#[test]
fn every_link_of_the_demo_leads_to_a_page_that_keeps_the_policy() {
    let mut c = program();
    c.args(["demo", "--listen", "127.0.0.1:0"]);
    let s = Server::of(c);
    const KINDS: [(&str, &str); 10] = [
        ("/rehearsal", "rehearsal"),
        (".md", "note"),
        ("?print", "print"),
        ("/bundle", "bundle"),
        ("/incidents/", "incident"),
        ("/fleet", "fleet"),
        ("/gpus", "gpus"),
        ("/capacity", "capacity"),
        ("/assets/", "asset"),
        ("/", "list"),
    ];
    // Filters combine without end: of each kind some are asked for.
    const EACH: usize = 25;
    let (mut seen, mut queue) = (BTreeSet::new(), VecDeque::from(["/".to_owned(), "/?each=true".to_owned()]));
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    while let Some(link) = queue.pop_front() {
        let kind = KINDS.iter().find(|(part, _)| link.contains(part)).unwrap().1;
        if seen.contains(&link) || kinds.get(kind).is_some_and(|n| *n >= EACH) {
            continue;
        }
        seen.insert(link.clone());
        *kinds.entry(kind).or_default() += 1;
        let a = s.get(&link);
        assert_eq!(a.status, 200, "{link}: {}", a.text());
        if a.header("content-type").starts_with("text/html") {
            let policy = a.header("content-security-policy");
            assert_eq!(policy, dualplane_pages::POLICY, "{link}");
            assert_eq!(a.header("x-content-type-options"), "nosniff");
            let page = a.text();
            assert!(page.ends_with("</html>"), "{link}");
            queue.extend(links(&page));
        }
    }
    for wanted in ["incident", "note", "print", "fleet", "gpus", "capacity", "asset", "bundle", "rehearsal"] {
        assert!(kinds.contains_key(wanted), "no link of the kind {wanted}: {kinds:?}");
    }
}

/// The program of the same build, where it was built as well.
#[test]
fn a_fix_is_rehearsed_by_the_program_beside_it() {
    let mut c = program();
    c.args(["demo", "--listen", "127.0.0.1:0"]);
    let s = Server::of(c);
    let page = |query: &str| {
        let a = s.get(&format!("/incidents/demo-live-matrix-kv/rehearsal{query}"));
        assert_eq!(a.status, 200, "{}", a.text());
        a.text()
    };
    assert!(s.get("/incidents/demo-live-matrix-kv").text().contains("/rehearsal\""));
    // A cache that holds is no all-clear for the other plane.
    let host = s.get("/incidents/demo-vllm-both-planes-to-the-kill/rehearsal").text();
    assert!(
        host.contains("This death was of host RAM") && !page("").contains("This death was of host RAM"),
        "{host}"
    );
    for (bad, says) in [
        ("?gpu=../x", "a card is named like"),
        ("?traffic=all", "of the bundle or one of"),
        ("?rate=0", "above 0"),
        ("?trace=x", "asked by gpu"),
    ] {
        assert!(page(bad).contains(says), "{bad}");
    }
    let beside = std::path::Path::new(env!("CARGO_BIN_EXE_dualplane-server")).with_file_name("dualplane");
    if !beside.exists() {
        eprintln!("skipped: dualplane was not built beside the server");
        return;
    }
    let none = page("?gpu=L40S");
    assert!(none.contains("tells of a request") && !none.contains("/bundles/"), "{none}");
    let played = page("?gpu=L40S&traffic=chat&rate=2");
    // The launch does not start; with the fix that triage computes it does, and that is rehearsed.
    assert!(played.contains("--max-model-len") && played.contains("What happens"), "{played}");
    let command = "dualplane rehearse --incident bundle.tar.gz --gpu=L40S --traffic=chat --rate=2";
    assert!(played.contains(command), "{played}");
    // What the page tells to type is answered with the same words.
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("bundle.tar.gz"), s.get("/v1/incidents/demo-live-matrix-kv/bundle").body)
        .unwrap();
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let typed = std::process::Command::new(&beside)
        .args(words)
        .arg("--no-search")
        .current_dir(home.path())
        .output()
        .unwrap();
    let first = String::from_utf8(typed.stdout).unwrap().lines().next().unwrap().to_owned();
    assert!(!first.is_empty() && played.contains(first.split("  ").next().unwrap()), "{first}");
}

#[test]
fn errors_are_pages_and_a_misread_filter_lists_nothing() {
    let home = tempfile::tempdir().unwrap();
    let s = Server::start(home.path(), &[]);
    assert_eq!(s.put("a", "own").status, 201);
    for (path, status, says) in [
        ("/incidents/none", 404, "there is no such incident"),
        ("/incidents/..%2f..%2fetc%2fpasswd", 404, "there is no such incident"),
        ("/incidents/none.md", 404, "there is no such incident"),
        ("/gpus/GPU-none", 404, "names this card"),
        ("/fleet?since=yesterday", 400, "RFC 3339"),
        ("/assets/0000/page.css", 404, "no such file"),
    ] {
        let a = s.get(path);
        assert_eq!(a.status, status, "{path}");
        assert!(a.text().contains(says), "{path}: {}", a.text());
    }
    let a = s.get("/?nodes=x");
    assert!(
        a.status == 200 && a.text().contains("no filter is called") && !a.text().contains("/incidents/a\""),
        "{}",
        a.text()
    );
    assert!(s.get("/").text().contains("/incidents/a\""));
    assert!(s.get("/?behind=nonsense").text().contains("cannot be read"));
    // An incident without a bundle has a page, and a note.
    let page = s.get("/incidents/a").text();
    assert!(page.contains("No bundle was sent") && page.contains("cuda_oom_runtime"), "{page}");
    let note = s.get("/incidents/a.md");
    assert!(
        note.header("content-type").starts_with("text/markdown") && note.text().starts_with("# "),
        "{}",
        note.text()
    );
    assert_eq!(s.ask("POST", "/", &[], b"x=1").status, 405, "a page changes nothing");
}

#[test]
fn a_page_shows_nothing_of_another_namespace() {
    let home = tempfile::tempdir().unwrap();
    let token = |name: &str, role: &str, namespace: &str| {
        let made =
            program().args(["token", name, "--role", role, "--namespace", namespace]).output().unwrap();
        let lines = String::from_utf8(made.stdout).unwrap();
        let token = String::from_utf8(made.stderr).unwrap().rsplit(' ').next().unwrap().trim().to_owned();
        (lines, format!("Bearer {token}"))
    };
    let (own, reader) = token("reader", "read", "own");
    let (up, sender) = token("sender", "upload", "own");
    let (foreign, other) = token("other", "upload", "foreign");
    let tokens = home.path().join("tokens.toml");
    std::fs::write(&tokens, own + &up + &foreign).unwrap();
    let s = Server::start(home.path(), &["--tokens", tokens.to_str().unwrap()]);
    for (id, namespace, token) in [("mine", "own", &sender), ("theirs", "foreign", &other)] {
        let path = format!("/v1/incidents/{id}");
        let sent = s.ask("PUT", &path, &[("authorization", token)], &crate::harness::upload(id, namespace));
        assert_eq!(sent.status, 201, "{}", sent.text());
    }
    for path in [
        "/",
        "/?each=true",
        "/?q=foreign",
        "/?namespace=foreign",
        "/fleet",
        "/gpus",
        "/capacity",
        "/incidents/mine",
    ] {
        let a = s.ask("GET", path, &[("authorization", &reader)], b"");
        assert_eq!(a.status, 200, "{path}");
        // What was asked for may stand in a form and in what takes it back, and nowhere else.
        assert!(!a.text().contains("theirs"), "{path}");
        assert_eq!(s.get(path).status, 401, "{path} without a token");
        assert_eq!(
            s.ask("GET", path, &[("authorization", &sender)], b"").status,
            403,
            "{path} to send is not to read"
        );
    }
    for path in [
        "/incidents/theirs",
        "/incidents/theirs.md",
        "/incidents/theirs?print",
        "/incidents/theirs/rehearsal?gpu=L40S",
    ] {
        assert_eq!(s.ask("GET", path, &[("authorization", &reader)], b"").status, 404, "{path}");
    }
}
