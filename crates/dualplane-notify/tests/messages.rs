//! The messages of each channel: one as an example that is kept, and the rules that hold for every incident.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    missing_docs
)]

use std::path::Path;

use dualplane_incidents::Incident;
use dualplane_notify::{Channel, Notice};
use proptest::prelude::{ProptestConfig, proptest};
use proptest::prop_assert;
use serde_json::Value;

const INCIDENT: &str = r#"{"schema":"dualplane.fleet-incident/v1","id":"20261120T100500Z-serving-llm-3","cluster":"eu-west-1","namespace":"serving","owner":"llm","pod":"llm-7d9c5b6f4-x2kqm","container":"vllm","node":"gpu-node-3","image":"vllm/vllm-openai:v0.9.1","model":"Qwen/Qwen3-32B","engine":"vllm","engine_version":"0.9.1","gpus":[],"xids":[],"class":"host_oom_killed","plane":"host","phase":"traffic","confidence":"high","title":"the container was OOM-killed over its host RAM limit","summary":"the kernel OOM-killed VLLM::Worker_TP (host pid 181204) at the container's memory limit of 64.00 GiB","trigger":{"text":"[Fri Nov 20 10:04:59 2026] VLLM::Worker_TP invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=985","file":"kernel.log","line":1},"top_action":"Set the memory request and limit to 71Gi","loop_key":"eu-west-1/serving/llm/vllm","cause_key":"eu-west-1/serving/llm/vllm/host_oom_killed","died_at":"2026-11-20T10:05:00.000Z","died_at_from":"report","received_at":"2026-11-20T10:06:00.000Z","occurrences":4}"#;

fn notice() -> Notice {
    let incident: Incident = serde_json::from_str(INCIDENT).unwrap();
    Notice { folded: 2, ..Notice::of(&incident, "https://dualplane.example.com/") }
}

/// Every text of it is this one.
fn planted(text: &str) -> Notice {
    let mut n = notice();
    let i = &mut n.incident;
    for field in [
        &mut i.cluster,
        &mut i.namespace,
        &mut i.owner,
        &mut i.pod,
        &mut i.container,
        &mut i.node,
        &mut i.image,
        &mut i.model,
        &mut i.engine,
        &mut i.engine_version,
        &mut i.title,
        &mut i.summary,
        &mut i.loop_key,
        &mut i.cause_key,
    ] {
        *field = text.to_owned();
    }
    i.top_action = Some(text.to_owned());
    let trigger = i.trigger.as_mut().unwrap();
    trigger.text = text.to_owned();
    trigger.file = text.to_owned();
    n
}

/// The form of a document: what stays when every text is forgotten.
fn form(value: &Value) -> Value {
    match value {
        Value::String(_) => Value::Null,
        Value::Array(all) => Value::Array(all.iter().map(form).collect()),
        Value::Object(all) => all.iter().map(|(k, v)| (k.clone(), form(v))).collect(),
        other => other.clone(),
    }
}

fn texts(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(s) => out.push(s.clone()),
        Value::Array(all) => all.iter().for_each(|v| texts(v, out)),
        Value::Object(all) => all.values().for_each(|v| texts(v, out)),
        _ => {}
    }
}

#[test]
fn the_example_of_each_channel() {
    for channel in Channel::ALL {
        let body = channel.message(&notice()).unwrap();
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../knowledge/notify/examples");
        let ending = if channel == Channel::Email { "eml" } else { "json" };
        expectorate::assert_contents(dir.join(format!("{}.{ending}", channel.as_str())), &body.text);
        // What everybody must be told, whatever the form.
        let flat = body.text.replace("=\r\n", "").replace('\\', "").replace("=3D", "=");
        for part in [
            "host_oom_killed",
            "Host RAM",
            "invoked oom-killer",
            "71Gi",
            "/incidents/20261120T100500Z-serving-llm-3",
        ] {
            assert!(flat.contains(part), "{}: no {part} in {flat}", channel.as_str());
        }
        assert_eq!(body.needs_secret, channel == Channel::Pagerduty);
    }
}

#[test]
fn what_is_not_known_is_left_out() {
    let mut bare = notice();
    bare.folded = 0;
    let i = &mut bare.incident;
    i.occurrences = 1;
    i.trigger = None;
    i.top_action = None;
    for field in [&mut i.cluster, &mut i.node, &mut i.model, &mut i.container] {
        field.clear();
    }
    // The webhook carries the incident as it is kept.
    for channel in Channel::ALL.into_iter().filter(|c| *c != Channel::Webhook) {
        let text = channel.message(&bare).unwrap().text;
        for word in [
            "First error",
            "first error",
            "Do first",
            "do first",
            "\"node\": \"\"",
            "``````",
            "Again",
            "\"trigger\": \"\"",
        ] {
            assert!(!text.contains(word), "{}: {word} in {text}", channel.as_str());
        }
    }
}

#[test]
fn a_secret_fits_into_its_place_and_into_no_other() {
    let body = Channel::Pagerduty.message(&planted("{secret}")).unwrap();
    let filled = body.with_secret("k\"ey\n");
    let doc: Value = serde_json::from_str(&filled.text).unwrap();
    assert_eq!(doc["routing_key"], "k\"ey");
    assert_eq!(filled.text.matches("k\\\"ey").count(), 1);
    let slack = Channel::Slack.message(&planted("{secret}")).unwrap();
    assert_eq!(slack.with_secret("key"), slack);
}

fn holds(text: &str) -> Result<(), String> {
    for channel in Channel::ALL {
        let told = |what: &str| Err(format!("{}: {what} by {text:?}", channel.as_str()));
        let body = channel.message(&planted(text)).unwrap();
        if channel == Channel::Email {
            let heads = |t: &str| {
                t.split("\r\n\r\n").next().unwrap().split("\r\n").filter(|l| !l.starts_with(' ')).count()
            };
            let harmless = channel.message(&planted("x")).unwrap();
            if heads(&body.text) != heads(&harmless.text) || !body.text.is_ascii() {
                return told("the headers changed");
            }
            if body.text.split("\r\n").any(|l| l.len() > 998 || l == ".")
                || body.text.replace("\r\n", "").contains(['\r', '\n'])
            {
                return told("a line that no server takes");
            }
            continue;
        }
        let doc: Value = serde_json::from_str(&body.text).unwrap();
        let harmless: Value = serde_json::from_str(&channel.message(&planted("x")).unwrap().text).unwrap();
        if form(&doc) != form(&harmless) {
            return told("the form changed");
        }
        let mut all = Vec::new();
        texts(&doc, &mut all);
        for t in all {
            // The headline of Slack's header block is plain text there.
            let headline = planted(text).headline();
            let plain = dualplane_base::text::printable(&headline) == t;
            if channel == Channel::Slack && !plain && t.contains(['<', '>']) {
                return told("a mention");
            }
            if channel == Channel::Discord && t.replace("\\@", "").contains('@') {
                return told("a mention");
            }
            // What the webhook carries beside was cleaned when the incident was made.
            if channel != Channel::Webhook
                && t.chars().any(|c| dualplane_base::text::is_unsafe(c) && c != '\n')
            {
                return told("something invisible");
            }
        }
    }
    Ok(())
}

#[test]
fn planted_texts_mention_nobody_and_change_no_form() {
    for text in [
        "<!channel>",
        "<@U123>",
        "<https://evil.example|click>",
        "@everyone",
        "@here",
        "[click](https://evil.example)",
        "```\n*x*",
        "\",\"x\":\"",
        "{action}",
        "{secret}",
        "a\r\nBcc: x@y.example\r\n\r\nbody",
        "\r\n.\r\n",
        "\u{202e}abc\u{0}",
        "</b>&lt;",
    ] {
        holds(text).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn no_text_changes_a_form(text in proptest::string::string_regex("(?s)x.{0,60}").unwrap()) {
        let told = holds(&text);
        prop_assert!(told.is_ok(), "{told:?}");
    }

    #[test]
    fn no_message_is_larger_than_a_service_takes(n in 1_usize..60_000) {
        for channel in Channel::ALL {
            let body = channel.message(&planted(&"w".repeat(n))).unwrap();
            // The webhook carries the whole incident, whose texts were bounded when it was made.
            prop_assert!(channel == Channel::Webhook || body.text.len() <= 28_000, "{}: {}", channel.as_str(), body.text.len());
        }
    }
}
