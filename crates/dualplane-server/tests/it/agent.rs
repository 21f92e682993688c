//! The agent's own sink against the real server: what it takes for delivered is kept, and nothing else.

use dualplane_agent::incident::{Kind, State, Summary};
use dualplane_agent::publish::{Sink, SinkError, Web, WebConfig};

use crate::harness::Server;

fn summary(id: &str) -> Summary {
    Summary {
        schema: dualplane_agent::incident::SCHEMA.to_owned(),
        id: id.to_owned(),
        kind: Kind::Death,
        state: State::Judged,
        died_at: "2026-11-21T12:45:59.000Z".into(),
        node: "n1".into(),
        namespace: "serving".into(),
        pod: "llm-0".into(),
        uid: String::new(),
        api_uid: None,
        container: "server".into(),
        container_id: String::new(),
        restart: None,
        first: true,
        class: None,
        plane: None,
        trigger: None,
        kernel_record: None,
        from_exec: false,
        exit_code: None,
        durable_ms: None,
        bytes: 1,
    }
}

#[test]
fn an_agent_delivers_and_a_second_time_changes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let s = Server::start(home.path(), &[]);
    let incident =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/incidents/real-k8s-pid1-oom");
    let bundle = home.path().join("death.tar.zst");
    let mut tar = tar::Builder::new(std::fs::File::create(&bundle).unwrap());
    for file in ["kernel.log", "pod.json", "previous.log"] {
        tar.append_path_with_name(incident.join(file), file).unwrap();
    }
    tar.finish().unwrap();
    let config = WebConfig { url: format!("{}/v1/agent?cluster=prod", s.url), ..WebConfig::default() };
    let mut sink = Web::new(config).unwrap();
    sink.check().unwrap();
    let death = summary("20261121T124559.000Z-serving-llm-0-server-1");
    sink.deliver(&death, &bundle).unwrap();
    sink.deliver(&death, &bundle).unwrap();
    assert_eq!(s.ids(), std::slice::from_ref(&death.id));
    let i = s.get(&format!("/v1/incidents/{}", death.id)).json();
    assert_eq!((i["class"].as_str(), i["cluster"].as_str()), (Some("host_oom_killed"), Some("prod")));
    assert_eq!(s.get(&format!("/v1/incidents/{}/bundle", death.id)).body, std::fs::read(&bundle).unwrap());
    // What will never be taken is not tried for ever.
    std::fs::write(&bundle, vec![0_u8; 65 << 20]).unwrap();
    let refused = sink.deliver(&summary("20261121T124559.000Z-serving-llm-0-server-2"), &bundle);
    assert!(matches!(refused, Err(SinkError::Refused(_) | SinkError::Later(_))), "{refused:?}");
    let away = s.url.clone();
    drop(s);
    let mut sink = Web::new(WebConfig { url: format!("{away}/v1/agent"), ..WebConfig::default() }).unwrap();
    assert!(matches!(sink.deliver(&death, &bundle), Err(SinkError::Later(_))));
}
