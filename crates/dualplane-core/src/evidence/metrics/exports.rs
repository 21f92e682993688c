//! Exports of log stores as JSON: Loki (API answer, `logcli -o jsonl`), Datadog, CloudWatch, Cloud Logging, Elasticsearch.
//!
//! They become the lines of a log in the order of time: stores answer with the newest first as often as not. Each line
//! keeps the line of the file in which it stands.

use dualplane_base::order::Order as _;
use serde_json::Value;

use crate::time::{Stamp, parse_rfc3339};

/// Records of one export.
const MAX_RECORDS: usize = 2_000_000;
/// Where the text of a record stands.
const MESSAGES: &[&str] = &[
    "/message",
    "/@message",
    "/line",
    "/attributes/message",
    "/content/message",
    "/textPayload",
    "/jsonPayload/message",
    "/_source/message",
    "/_source/log",
    "/@message/log",
];
/// And where its time.
const TIMES: &[&str] = &[
    "/timestamp",
    "/@timestamp",
    "/ts",
    "/attributes/timestamp",
    "/content/timestamp",
    "/_source/@timestamp",
];
/// And the list of records.
const LISTS: &[&str] = &["/events", "/data", "/logs", "/hits/hits", "/entries", "/logEvents"];

/// Lines in the order of time and the line of the file of each.
#[derive(Debug, Default)]
pub struct Export {
    /// The text, a line each.
    pub text: String,
    /// The line of the file, from 1.
    pub numbers: Vec<u64>,
}

struct Record {
    message: String,
    /// Nanoseconds, or whatever the store counts in; only compared within one export.
    time: Option<i128>,
    number: u64,
}

/// Reads an export; `None` where the JSON is something else.
pub(in crate::evidence) fn read(value: &Value, text: &str) -> Option<Export> {
    let mut records = Vec::new();
    collect(value, &mut records);
    if records.is_empty() {
        return None;
    }
    place(&mut records, text);
    Some(in_time_order(records))
}

/// Reads JSON lines of `logcli -o jsonl`, Datadog or Cloud Logging. Application logs have other keys.
pub(in crate::evidence) fn read_lines(text: &str) -> Option<Export> {
    let mut records = Vec::new();
    for (i, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
        let value: Option<Value> = serde_json::from_str(line).ok();
        let store = |v: &Value| {
            v.get("line").is_some() && v.get("labels").is_some()
                || v.get("textPayload").is_some()
                || v.pointer("/attributes/message").is_some()
                || v.pointer("/_source").is_some()
        };
        match value.filter(store).and_then(|v| record(&v)) {
            Some(mut r) if records.len() < MAX_RECORDS => {
                r.number = i as u64 + 1;
                records.push(r);
            }
            Some(_) => break,
            None if records.is_empty() => return None,
            None => {}
        }
    }
    (!records.is_empty()).then(|| in_time_order(records))
}

fn collect(value: &Value, out: &mut Vec<Record>) {
    // Loki: {"data": {"resultType": "streams", "result": [{"stream": {…}, "values": [["ns", "line"], …]}]}}
    let streams = value.pointer("/data/result").or_else(|| value.pointer("/streams"));
    for stream in streams.and_then(Value::as_array).into_iter().flatten() {
        for pair in stream.get("values").and_then(Value::as_array).into_iter().flatten() {
            if let (Some(time), Some(line)) =
                (pair.get(0).and_then(Value::as_str), pair.get(1).and_then(Value::as_str))
            {
                push(out, line, time.parse().ok());
            }
        }
    }
    // CloudWatch Insights: {"results": [[{"field": "@message", "value": "…"}, …], …]}
    for row in value.pointer("/results").and_then(Value::as_array).into_iter().flatten() {
        let field = |name: &str| {
            let cell =
                row.as_array()?.iter().find(|c| c.get("field").and_then(Value::as_str) == Some(name))?;
            cell.get("value")
        };
        if let Some(message) = field("@message").and_then(Value::as_str) {
            push(out, message, field("@timestamp").and_then(time_of));
        }
    }
    let lists = LISTS.iter().filter_map(|p| value.pointer(p)).chain([value]);
    for item in lists.filter_map(Value::as_array).flatten() {
        if let Some(r) = record(item).filter(|_| out.len() < MAX_RECORDS) {
            out.push(r);
        }
    }
}

fn push(out: &mut Vec<Record>, message: &str, time: Option<i128>) {
    if out.len() < MAX_RECORDS {
        out.push(Record { message: message.to_owned(), time, number: 0 });
    }
}

/// A record of a store: its text together with a time, as nothing else here has both.
fn record(v: &Value) -> Option<Record> {
    let message = MESSAGES.iter().find_map(|p| v.pointer(p).and_then(Value::as_str))?;
    let time = TIMES.iter().find_map(|p| v.pointer(p))?;
    Some(Record { message: message.to_owned(), time: time_of(time), number: 0 })
}

fn time_of(v: &Value) -> Option<i128> {
    if let Some(n) = v.as_i64() {
        return Some(i128::from(n));
    }
    let text = v.as_str()?;
    if let Ok(n) = text.parse::<i128>() {
        return Some(n);
    }
    let stamp = parse_rfc3339(text).or_else(|| crate::time::find_stamp(text))?;
    match stamp {
        Stamp::Wall { ms, .. } => Some(i128::from(ms)),
        Stamp::Boot { us } => Some(i128::from(us)),
    }
}

/// Finds the line of each message: records come in the order of the text, so one walk over its strings is enough.
fn place(records: &mut [Record], text: &str) {
    let bytes = text.as_bytes();
    let (mut line, mut at, mut next) = (1, 0, 0);
    while let (Some(b), Some(record)) = (bytes.get(at), records.get_mut(next)) {
        match b {
            b'\n' => line += 1,
            b'"' => {
                let mut end = at + 1;
                while let Some(b) = bytes.get(end).filter(|b| **b != b'"') {
                    end += if *b == b'\\' { 2 } else { 1 };
                }
                // The raw form is never shorter than the message.
                let raw = text.get(at..=end).unwrap_or_default();
                if raw.len() >= record.message.len() + 2
                    && serde_json::from_str::<String>(raw).is_ok_and(|s| s == record.message)
                {
                    record.number = line;
                    next += 1;
                }
                at = end;
            }
            _ => {}
        }
        at += 1;
    }
    // What was not found (a string twice in one record, out of order) is cited by the line before it.
    let mut last = 1;
    for r in records {
        if r.number == 0 {
            r.number = last;
        }
        last = r.number;
    }
}

fn in_time_order(mut records: Vec<Record>) -> Export {
    let times: Vec<Option<i128>> = records.iter().map(|r| r.time).collect();
    let falls = times.windows(2).filter(|w| w.first() > w.last()).count();
    let rises = times.windows(2).filter(|w| w.first() < w.last()).count();
    // Newest first: records of one moment are in reverse as well.
    if falls > rises {
        records.reverse();
    }
    if records.iter().all(|r| r.time.is_some()) {
        records.order_by_key(|r| r.time);
    }
    let mut out = Export::default();
    for r in &records {
        for line in r.message.trim_end_matches(['\n', '\r']).split('\n') {
            out.text.push_str(line);
            out.text.push('\n');
            out.numbers.push(r.number);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_first_becomes_oldest_first() {
        let text = "{\"events\":[\n{\"timestamp\":3,\"message\":\"c\\nd\"},\n{\"timestamp\":2,\"message\":\"b\"},\n{\"timestamp\":2,\"message\":\"a\"}]}";
        let e = read(&serde_json::from_str(text).unwrap(), text).unwrap();
        assert_eq!(e.text, "a\nb\nc\nd\n");
        assert_eq!(e.numbers, [4, 3, 2, 2]);
    }

    #[test]
    fn other_json_is_no_export() {
        for text in
            ["{}", "[]", "{\"message\":\"x\"}", "[{\"message\":\"x\"}]", "{\"data\":[1,null,\"x\"]}", "null"]
        {
            assert!(read(&serde_json::from_str(text).unwrap(), text).is_none(), "{text}");
        }
        assert!(read_lines("{\"message\":\"x\",\"timestamp\":1}\n").is_none(), "an application's own JSON");
    }
}
