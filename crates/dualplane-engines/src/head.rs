//! Takes the head out of a file of entries, and its examples apart. The build script uses this file too, so that a team's
//! own engines go the way of the embedded ones.

use serde_json::Value;

/// What an engine's head must recognise, and behind it what it must not.
#[derive(Debug, Clone, Default)]
pub struct HeadExamples {
    /// Id of the engine.
    pub id: String,
    /// Names of images.
    pub images: [Vec<String>; 2],
    /// Command lines.
    pub commands: [Vec<String>; 2],
    /// Names of processes, as the kernel prints them.
    pub processes: [Vec<String>; 2],
}

/// The head of a file without its examples.
#[must_use]
pub fn head(file: &Value) -> Option<Value> {
    let mut head = file.get("engine")?.as_object()?.clone();
    head.remove("examples");
    head.remove("near_misses");
    if let Some(Value::Object(metrics)) = head.get_mut("metrics") {
        metrics.remove("examples");
    }
    Some(Value::Object(head))
}

/// The examples of the head of a file.
#[must_use]
pub fn examples(file: &Value) -> Option<HeadExamples> {
    let head = file.get("engine")?.as_object()?;
    let list = |which: &str, key: &str| {
        let items = head.get(which).and_then(|e| e.get(key)?.as_array());
        items.into_iter().flatten().filter_map(|v| v.as_str().map(str::to_owned)).collect()
    };
    let of = |key: &str| [list("examples", key), list("near_misses", key)];
    let id = head.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    Some(HeadExamples { id, images: of("images"), commands: of("commands"), processes: of("processes") })
}
