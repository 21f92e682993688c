//! An alert or a chat shows the message of an event without its reason, object and table: each sentence of the kubelet that
//! is known in an event is known alone.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs, clippy::disallowed_methods)]

mod common;

use dualplane_core::evidence::RawFile;
use dualplane_core::knowledge::Knowledge;
use dualplane_core::verdict::Verdict;
use dualplane_report as report;

fn verdict(text: &str, knowledge: &Knowledge) -> Verdict {
    let files = vec![RawFile::new("paste.txt", text)];
    report::triage_all("x", files, Vec::new(), knowledge).remove(0).verdict
}

/// Reason and message of an event, as the table has them.
fn parts(example: &str) -> Option<(&str, &str)> {
    let (reason, message) = example.split_once(": ")?;
    let word =
        reason.starts_with(|c: char| c.is_ascii_uppercase()) && reason.chars().all(char::is_alphanumeric);
    (word && !message.trim().is_empty()).then_some((reason, message))
}

#[test]
fn a_sentence_alone_says_what_it_says_in_its_event() {
    let knowledge = Knowledge::embedded().unwrap();
    let (mut wrong, mut seen, mut unknown) = (Vec::new(), 0, 0);
    let text = std::fs::read_to_string(common::root().join("knowledge/kubelet.toml")).unwrap();
    let table: toml::Table = toml::from_str(&text).unwrap();
    let word =
        |s: &toml::Value, key: &str| s.get(key).and_then(|v| v.as_str()).unwrap_or_default().to_owned();
    for s in table["signature"].as_array().unwrap() {
        if !["fatal", "failure", "death"].contains(&word(s, "mark").as_str()) {
            continue;
        }
        for example in s["examples"].as_array().unwrap().iter().filter_map(|e| e.as_str()) {
            let Some((reason, message)) = parts(example) else { continue };
            let table = format!(
                "LAST SEEN   TYPE      REASON   OBJECT       MESSAGE\n2m   Warning   {reason}   pod/llm-0   {message}\n"
            );
            let of_event = verdict(&table, &knowledge);
            for alone in [message.to_owned(), example.to_string(), format!("> - Message: {message}")] {
                let v = verdict(&alone, &knowledge);
                seen += 1;
                let unheard = v.class == dualplane_base::Class::Unknown;
                // Some sentences say little without their reason: `context deadline exceeded`.
                if v.class != of_event.class && !(unheard && alone != example) {
                    wrong.push(format!(
                        "{} {alone:?}: {:?} by {}, in its event {:?} by {}",
                        word(s, "id"),
                        v.class,
                        v.decided_by,
                        of_event.class,
                        of_event.decided_by
                    ));
                }
                unknown += usize::from(unheard && of_event.class != v.class);
            }
        }
    }
    assert!(unknown * 10 <= seen, "{unknown} of {seen} say nothing without their reason");
    assert!(seen > 200, "{seen}");
    assert!(wrong.is_empty(), "{}: {wrong:#?}", wrong.len());
}
