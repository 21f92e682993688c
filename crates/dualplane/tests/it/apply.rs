//! `apply` and `rollback` against a tiny API server: what is sent, in which order, and what is kept.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Output;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::harness::{code, dir, dualplane, stderr, stdout};

/// How the server answers a change that is no dry run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Good,
    /// Only the status moved: 409 once, then made.
    StatusMoved,
    /// Someone else changed it: 409.
    Changed,
    /// It hangs up, with the change made.
    HangsUp,
    /// It refuses.
    Denies,
    /// Pods of any template but the first do not come up.
    NoPods,
}

pub(crate) struct State {
    pub(crate) object: Value,
    /// The ConfigMap `llm-conf`.
    map: Value,
    mood: Mood,
    /// Changes that were asked for, dry runs not counted.
    writes: Vec<Value>,
    /// Records on the disk at the moment of each.
    planned: Vec<usize>,
    records: PathBuf,
}

pub(crate) struct Fake {
    pub(crate) state: Arc<Mutex<State>>,
    home: tempfile::TempDir,
}

const PATCH: &str =
    "spec: {template: {spec: {containers: [{name: server, resources: {limits: {memory: 2Gi}}}]}}}\n";

fn object() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "llm", "namespace": "serving", "uid": "u-1", "resourceVersion": "7"},
        "spec": {"replicas": 2, "template": {"spec": {"containers": [
            {"name": "side"}, {"name": "server", "resources": {"limits": {"memory": "1Gi"}}}]}}}})
}

fn map(length: u32) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "llm-conf", "namespace": "serving", "uid": "u-2", "resourceVersion": "3"},
        "data": {"serve.yaml": format!("# team a\nmodel: m\nmax-model-len: {length}  # long\n"), "ARGS": "--port 1 --max-model-len 8192"}})
}

const LIMIT: &str = "/spec/template/spec/containers/1/resources/limits/memory";

impl Fake {
    pub(crate) fn new(mood: Mood) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "k", "cluster": {"server": format!("http://{}", listener.local_addr().unwrap())}}],
            "users": [{"name": "jane", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "jane", "namespace": "serving"}}]});
        let home = dir(&[("config", kubeconfig.to_string().as_bytes()), ("patch.yaml", PATCH.as_bytes())]);
        let records = home.path().join("state/dualplane/changes");
        let state = State {
            object: object(),
            map: map(8192),
            mood,
            writes: Vec::new(),
            planned: Vec::new(),
            records,
        };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || while serve(&stream, &shared).is_some() {});
            }
        });
        Self { state, home }
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        let mut c = dualplane();
        c.args(args).current_dir(self.home.path());
        c.env("KUBECONFIG", self.home.path().join("config"))
            .env("XDG_STATE_HOME", self.home.path().join("state"));
        c.output().unwrap()
    }

    fn apply(&self) -> Output {
        self.run(&["apply", "patch.yaml", "--to", "deploy/llm", "--yes"])
    }

    fn record(&self) -> Value {
        let files: Vec<_> = std::fs::read_dir(&self.state.lock().unwrap().records).unwrap().collect();
        assert_eq!(files.len(), 1);
        serde_json::from_slice(&std::fs::read(files[0].as_ref().unwrap().path()).unwrap()).unwrap()
    }

    pub(crate) fn writes(&self) -> usize {
        self.state.lock().unwrap().writes.len()
    }

    fn limit(&self) -> Value {
        self.state.lock().unwrap().object.pointer(LIMIT).cloned().unwrap()
    }
}

/// One request; `None` ends the connection.
fn serve(stream: &TcpStream, state: &Mutex<State>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let (mut length, mut header) = (0, String::new());
    while reader.read_line(&mut header).ok()? > 2 {
        if let Some(n) = header.to_ascii_lowercase().strip_prefix("content-length:") {
            length = n.trim().parse().ok()?;
        }
        header.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (status, answer) = answer(&line, &body, &mut state.lock().unwrap())?;
    let text = answer.to_string();
    let mut out = stream;
    write!(
        out,
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    )
    .ok()
}

fn answer(line: &str, body: &[u8], state: &mut State) -> Option<(u16, Value)> {
    let failure = |code: u16, message: &str| Some((code, json!({"kind": "Status", "message": message})));
    if line.contains("poddisruptionbudgets") {
        return Some((200, json!({"kind": "PodDisruptionBudgetList", "items": []})));
    }
    let of_map = line.contains("/configmaps/");
    let object = if of_map { state.map.clone() } else { state.object.clone() };
    if line.starts_with("GET ") {
        let mut object = object;
        if state.mood == Mood::NoPods
            && object.to_string().contains("max-num-seqs")
            && !object.to_string().contains("\"2\"")
        {
            object["status"]["conditions"] = json!([{"type": "Progressing", "reason": "ProgressDeadlineExceeded", "message": "has timed out progressing"}]);
        }
        return Some((200, object));
    }
    let patch: Value = serde_json::from_slice(body).unwrap();
    let after = match patch.as_array() {
        Some(operations) => carried_out(operations, &object),
        None => dualplane_core::change::strategic(&object, &patch),
    };
    if line.contains("dryRun=All") {
        return Some((200, after));
    }
    state.planned.push(std::fs::read_dir(&state.records).map_or(0, Iterator::count));
    state.writes.push(patch);
    if of_map {
        state.map = after.clone();
        return Some((200, after));
    }
    match state.mood {
        Mood::Good | Mood::NoPods => {}
        Mood::StatusMoved => {
            state.mood = Mood::Good;
            state.object["metadata"]["resourceVersion"] = json!("8");
            state.object["status"] = json!({"unavailableReplicas": 1});
            return failure(409, "the object has been modified");
        }
        Mood::Changed => {
            state.object["metadata"]["resourceVersion"] = json!("8");
            state.object["spec"]["replicas"] = json!(5);
            return failure(409, "the object has been modified");
        }
        Mood::HangsUp => {
            state.object = after;
            return None;
        }
        Mood::Denies => return failure(403, "admission webhook \"policy\" denied the request: too much"),
    }
    state.object = after.clone();
    Some((200, after))
}

/// A JSON patch of values in objects, without its tests.
fn carried_out(operations: &[Value], object: &Value) -> Value {
    let mut after = object.clone();
    for o in operations.iter().filter(|o| o["op"] != "test") {
        let (parent, key) = o["path"].as_str().unwrap().rsplit_once('/').unwrap();
        let parent = after.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        if o["op"] == "remove" {
            parent.remove(key);
        } else {
            parent.insert(key.to_owned(), o["value"].clone());
        }
    }
    after
}

#[test]
fn a_change_is_recorded_before_it_is_sent_and_can_be_undone() {
    let fake = Fake::new(Mood::Good);
    let o = fake.apply();
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let text = stdout(&o);
    assert!(
        text.contains("-            memory: 1Gi\n+            memory: 2Gi")
            && text.contains("All 2 pods are replaced"),
        "{text}"
    );
    assert_eq!(fake.limit(), "2Gi");
    assert_eq!(fake.state.lock().unwrap().planned, [1], "the record was there when the change came");
    assert_eq!(fake.state.lock().unwrap().writes[0]["metadata"]["resourceVersion"], "7");
    let record = fake.record();
    assert_eq!(
        (&record["schema"], &record["state"], &record["user"]),
        (&json!("dualplane.change/v1"), &json!("applied"), &json!("jane"))
    );
    assert_eq!(record["changes"][0]["before"], "1Gi");

    let id = record["id"].as_str().unwrap();
    assert!(stdout(&fake.run(&["rollback"])).contains(id));
    let o = fake.run(&["rollback", &id[..4], "--yes"]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let back = fake.state.lock().unwrap().writes[1].clone();
    assert_eq!(back[0], json!({"op": "test", "path": "/metadata/resourceVersion", "value": "7"}));
    assert!(
        back.as_array().unwrap().contains(&json!({"op": "test", "path": LIMIT, "value": "2Gi"})),
        "{back}"
    );
    assert_eq!((fake.limit(), &fake.record()["state"]), (json!("1Gi"), &json!("rolled_back")));
}

const ARGS: &str = "/spec/template/spec/containers/1/args";

/// A report that shortens the longest request, from what the pod had.
fn report(was: &str) -> String {
    json!({"schema": "dualplane.verdict/v2", "subject": {"namespace": "serving", "pod": "llm-0", "container": "server"}, "actions": [{
        "stage": "fix", "title": "Set --max-model-len 8192", "patch": "spec: {template: {spec: {containers: [{name: server, args: [--max-model-len, \"8192\"]}]}}}",
        "changes": [{"kind": "setting", "engine": "vllm", "names": ["--max-model-len"], "value": "8192", "was": was, "shown": true}]}]})
    .to_string()
}

#[test]
fn a_flag_is_set_in_the_arguments_that_are_there() {
    let fake = Fake::new(Mood::Good);
    // The owner has more than the pod of the report, and other values beside.
    let args = json!(["-c", "exec vllm serve m --port 1 --max-model-len 32768 # end"]);
    fake.state.lock().unwrap().object["spec"]["template"]["spec"]["containers"][1] = json!({"name": "server", "image": "x", "command": ["sh"], "args": args, "resources": {"limits": {"memory": "1Gi"}}});
    let run = |was: &str, more: &[&str]| {
        std::fs::write(fake.home.path().join("report.json"), report(was)).unwrap();
        fake.run(&[&["apply", "report.json", "--to", "deploy/llm", "--yes"], more].concat())
    };
    let now = || fake.state.lock().unwrap().object.pointer(ARGS).cloned().unwrap();
    let o = run("65536", &[]);
    assert_eq!((code(&o), fake.writes()), (7, 0), "{}", stderr(&o));
    assert!(
        stderr(&o).contains("--max-model-len was 65536 in the report, but it is 32768 now"),
        "{}",
        stderr(&o)
    );

    // What a GitOps controller would take back is set there.
    fake.state.lock().unwrap().object["metadata"]["labels"] = json!({"argocd.argoproj.io/instance": "llm"});
    let o = run("32768", &[]);
    assert_eq!((code(&o), fake.writes()), (7, 0), "{}", stderr(&o));
    assert!(stderr(&o).contains("set --max-model-len 8192 there"), "{}", stderr(&o));

    let o = run("32768", &["--force-managed"]);
    assert_eq!((code(&o), fake.writes()), (0, 1), "{}", stderr(&o));
    assert!(stderr(&o).contains("computed anew"), "{}", stderr(&o));
    assert_eq!(now(), json!(["-c", "exec vllm serve m --port 1 --max-model-len 8192 # end"]));
    let again = run("32768", &["--force-managed"]);
    assert_eq!((code(&again), fake.writes()), (0, 1), "{}", stderr(&again));
    assert!(stdout(&again).contains("already has these settings"), "{}", stdout(&again));

    let o = fake.run(&["rollback", "--last", "--yes"]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    assert_eq!(now(), args);
}

/// `tune` names a move of the server that was measured; its Deployment gets it, and gives it back.
#[test]
fn the_next_move_of_tune_is_carried_out() {
    let fake = Fake::new(Mood::Good);
    let args = json!(["serve", "example/chat-8b", "--max-num-seqs", "2"]);
    fake.state.lock().unwrap().object["spec"]["template"]["spec"]["containers"] = json!([{"name": "server", "image": "x",
        "command": ["vllm"], "args": args, "resources": {"limits": {"memory": "1Gi"}}}]);
    let report = crate::harness::root().join("testdata/measure/few-at-a-time.json");
    let o = fake.run(&["tune", report.to_str().unwrap(), "-o", "json"]);
    std::fs::write(fake.home.path().join("move.json"), &o.stdout).unwrap();
    let now = || {
        fake.state.lock().unwrap().object.pointer("/spec/template/spec/containers/0/args").cloned().unwrap()
    };
    let o = fake.run(&["apply", "move.json", "--yes"]);
    assert!(code(&o) == 2 && stderr(&o).contains("--to deploy/NAME"), "{} {}", code(&o), stderr(&o));
    let o = fake.run(&["apply", "move.json", "--to", "deploy/llm", "--yes"]);
    assert_eq!((code(&o), fake.writes()), (0, 1), "{}", stderr(&o));
    assert_eq!(now(), json!(["serve", "example/chat-8b", "--max-num-seqs", "32"]));
    let o = fake.run(&["rollback", "--last", "--yes"]);
    assert_eq!((code(&o), now()), (0, args), "{}", stderr(&o));
}

const TEXT: &str = "/data/serve.yaml";

/// A server that takes its settings from a file of the ConfigMap.
fn with_file(engine: &str, args: &Value) -> Fake {
    let fake = Fake::new(Mood::Good);
    {
        let mut state = fake.state.lock().unwrap();
        let template = &mut state.object["spec"]["template"]["spec"];
        template["containers"][1] = json!({"name": "server", "image": "x", "command": [engine, "serve", "m"], "args": args,
            "env": [{"name": "ARGS", "valueFrom": {"configMapKeyRef": {"name": "llm-conf", "key": "ARGS"}}}],
            "volumeMounts": [{"name": "conf", "mountPath": "/etc/llm"}], "resources": {"limits": {"memory": "1Gi"}}});
        template["volumes"] = json!([{"name": "conf", "configMap": {"name": "llm-conf"}}]);
    }
    fake
}

/// A report that found the value in the log.
fn from_log(fake: &Fake, engine: &str, name: &str) {
    let report = json!({"schema": "dualplane.verdict/v2", "subject": {"namespace": "serving", "pod": "llm-0", "container": "server"},
        "actions": [{"stage": "fix", "title": "Shorten the longest request", "changes": [
            {"kind": "setting", "engine": engine, "names": [name], "value": "4096", "was": "8192", "shown": false}]}]});
    std::fs::write(fake.home.path().join("report.json"), report.to_string()).unwrap();
}

#[test]
fn a_setting_of_a_config_map_is_changed_there_and_the_pods_are_made_anew() {
    let fake = with_file("vllm", &json!(["--config", "/etc/llm/serve.yaml"]));
    from_log(&fake, "vllm", "--max-model-len");
    let before = (fake.state.lock().unwrap().object.clone(), map(8192));
    let o = fake.run(&["apply", "report.json", "--to", "deploy/llm", "--yes"]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let text = stdout(&o);
    assert!(text.contains("-    max-model-len: 8192  # long\n+    max-model-len: 4096  # long"), "{text}");
    assert!(text.contains("Changed configmap/llm-conf and deployment/llm"), "{text}");
    {
        let state = fake.state.lock().unwrap();
        assert_eq!(state.map.pointer(TEXT), map(4096).pointer(TEXT));
        let template = &state.object["spec"]["template"];
        assert!(template["metadata"]["annotations"]["dualplane.dev/settings-file"].is_string(), "{template}");
        assert_eq!(template["spec"], before.0["spec"]["template"]["spec"], "the flag stays in the file");
        assert!(state.writes[0].pointer(TEXT).is_some(), "the file before the pods");
    }
    let again = fake.run(&["apply", "report.json", "--to", "deploy/llm", "--yes"]);
    assert!(stdout(&again).contains("already has these settings"), "{}{}", stdout(&again), stderr(&again));
    let o = fake.run(&["rollback", "--last", "--yes"]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    assert!(stdout(&o).contains("Rolled back configmap/llm-conf and deployment/llm"), "{}", stdout(&o));
    let state = fake.state.lock().unwrap();
    assert_eq!(
        (&state.map, &state.object["spec"]["template"]["spec"]),
        (&before.1, &before.0["spec"]["template"]["spec"])
    );
    assert_eq!(annotation(&state.object), None, "{}", state.object);
}

fn annotation(object: &Value) -> Option<&Value> {
    object.pointer("/spec/template/metadata/annotations/dualplane.dev~1settings-file")
}

#[test]
fn a_file_that_overrides_the_command_line_takes_what_it_lacks_and_an_immutable_one_is_said() {
    let fake = with_file("trtllm-serve", &json!(["--extra_llm_api_options", "/etc/llm/serve.yaml"]));
    from_log(&fake, "tensorrt_llm", "--max_seq_len");
    fake.state.lock().unwrap().map["immutable"] = json!(true);
    let run = || fake.run(&["apply", "report.json", "--to", "deploy/llm", "--yes"]);
    let o = run();
    assert_eq!((code(&o), fake.writes()), (7, 0), "{}", stderr(&o));
    assert!(
        stderr(&o).contains("key serve.yaml of ConfigMap llm-conf, which is immutable"),
        "{}",
        stderr(&o)
    );
    fake.state.lock().unwrap().map["immutable"] = json!(false);
    let o = run();
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let now = fake.state.lock().unwrap().map.pointer(TEXT).cloned().unwrap();
    assert!(now.as_str().unwrap().ends_with("max-model-len: 8192  # long\nmax_seq_len: 4096\n"), "{now}");
}

#[test]
fn a_variable_of_a_config_map_is_given_to_this_container_alone() {
    let fake = with_file("vllm", &json!([]));
    fake.state.lock().unwrap().object["spec"]["template"]["spec"]["containers"][1]["command"] =
        json!(["sh", "-c", "exec vllm serve m $ARGS"]);
    from_log(&fake, "vllm", "--max-model-len");
    let o = fake.run(&["apply", "report.json", "--to", "deploy/llm", "--yes"]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let state = fake.state.lock().unwrap();
    let env = &state.object["spec"]["template"]["spec"]["containers"][1]["env"];
    assert_eq!(env, &json!([{"name": "ARGS", "value": "--port 1 --max-model-len 4096"}]));
    assert_eq!(state.map, map(8192));
}

#[test]
fn without_a_yes_nothing_is_sent() {
    let fake = Fake::new(Mood::Good);
    let o = fake.run(&["apply", "patch.yaml", "--to", "deploy/llm"]);
    assert_eq!((code(&o), fake.writes()), (7, 0), "{}", stderr(&o));
    assert!(stderr(&o).contains("--yes"));
    let o = fake.run(&["apply", "patch.yaml", "--to", "deploy/llm", "--dry-run"]);
    assert_eq!((code(&o), fake.writes()), (0, 0), "{}", stderr(&o));
}

#[test]
fn what_cannot_be_recorded_is_not_sent() {
    let fake = Fake::new(Mood::Good);
    std::fs::write(fake.home.path().join("state"), b"a file").unwrap();
    let o = fake.apply();
    assert_eq!((code(&o), fake.writes()), (3, 0), "{}", stderr(&o));
}

#[test]
fn what_was_shown_is_what_is_changed() {
    let fake = Fake::new(Mood::StatusMoved);
    let o = fake.apply();
    assert_eq!((code(&o), fake.writes()), (0, 2), "{}", stderr(&o));
    assert_eq!(fake.state.lock().unwrap().writes[1]["metadata"]["resourceVersion"], "8");

    let fake = Fake::new(Mood::Changed);
    let o = fake.apply();
    assert_eq!((code(&o), fake.writes()), (7, 1), "{}", stderr(&o));
    assert!(stderr(&o).contains("run the command again"), "{}", stderr(&o));
    assert_eq!(fake.record()["state"], "failed");
}

#[test]
fn an_answer_that_does_not_arrive_is_looked_for() {
    let fake = Fake::new(Mood::HangsUp);
    let o = fake.apply();
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    assert_eq!(fake.record()["state"], "applied");
}

#[test]
fn a_refusal_is_shown_as_the_server_says_it() {
    let fake = Fake::new(Mood::Denies);
    let o = fake.apply();
    assert_eq!(code(&o), 7);
    assert!(stderr(&o).contains("denied the request: too much"), "{}", stderr(&o));
    let record = fake.record();
    assert_eq!(record["state"], "failed");
    assert!(record["why"].as_str().unwrap().contains("too much"));
}

/// Only these files may send a change; see the invariant in ARCHITECTURE.md.
#[test]
fn only_apply_rollback_and_the_agents_event_write() {
    let root = crate::harness::root();
    let mut files = Vec::new();
    for crate_name in ["dualplane", "dualplane-agent", "dualplane-kube"] {
        crate::tidy::rust_files(&root.join("crates").join(crate_name).join("src"), &mut files);
    }
    // Words that stand in a request or lead to one, and the only files in which each may stand.
    let may: [(&str, &[&str]); 14] = [
        ("Method::PATCH", &["kube/src/api/mod.rs"]),
        ("Method::POST", &["kube/src/api/mod.rs"]),
        ("Method::PUT", &[]),
        ("Method::DELETE", &[]),
        ("Request::post", &[]),
        ("Request::put", &[]),
        ("Request::delete", &[]),
        ("Request::patch", &[]),
        ("Request::builder", &["kube/src/api/mod.rs"]),
        ("api.patch(", &["kube/src/apply/send.rs", "kube/src/event.rs"]),
        // A review asks who somebody is or what they may do, and leaves nothing behind.
        ("api.post(", &["kube/src/event.rs", "kube/src/review.rs"]),
        ("carry_out(", &["kube/src/apply/send.rs", "commands/live/apply.rs", "commands/live/rollback.rs"]),
        ("event::publish(", &["agent/src/publish/events/mod.rs"]),
        // Bundles go to a place that the user names, by another client than the cluster's.
        ("self.agent.put(", &["agent/src/publish/sinks/web.rs"]),
    ];
    let mut seen = std::collections::BTreeSet::new();
    for file in files.iter().filter(|f| !f.ends_with("tests.rs")) {
        let text = std::fs::read_to_string(file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        let name = file.to_string_lossy().into_owned();
        for (word, allowed) in may.iter().filter(|(word, _)| code.contains(word)) {
            assert!(allowed.iter().any(|a| name.ends_with(a)), "{name}: {word}");
            seen.insert((word, allowed.iter().position(|a| name.ends_with(a))));
        }
        if name.ends_with("kube/src/review.rs") {
            let reviews = ["tokenreviews", "subjectaccessreviews"];
            let asked = |r: &str| code.matches(&format!("io/v1\", \"{r}\")")).count() == 1;
            assert!(reviews.iter().all(|r| asked(r)) && code.matches("path::").count() == 2, "{name}");
        }
        // Its only paths are Events of one namespace.
        if name.ends_with("kube/src/event.rs") {
            assert_eq!(
                code.matches("path::").count(),
                code.matches("path::namespaced(\"v1\", notice.namespace, \"events\")").count()
                    + code.matches("path::named(&list, notice.name)").count()
            );
            assert_eq!(
                (code.matches("api.post(&list,").count(), code.matches("api.patch(&own,").count()),
                (1, 1)
            );
        }
    }
    // Else the words are written in another way by now, and this test sees nothing.
    assert_eq!(seen.len(), may.iter().map(|(_, allowed)| allowed.len()).sum::<usize>(), "{seen:?}");
}
