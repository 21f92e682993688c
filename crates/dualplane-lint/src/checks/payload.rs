//! Requests that bring images, video or sound: what they take of host RAM before the card sees them, and what is kept of them.

use dualplane_base::json::{list, str_at, text_of};
use dualplane_base::units::{Bytes, GIB, MIB};
use dualplane_engines::command_line::{flags, split, value};
use serde_json::Value;

use super::{Said, Server};

/// Flags that bound what one prompt may bring: vLLM's, SGLang's.
const LIMITS: [&str; 2] = ["--limit-mm-per-prompt", "--limit-mm-data-per-request"];
/// A decoded pixel: three colours of four bytes, as processors hand them on.
const PIXEL: u64 = 12;
/// An image whose size no flag tells has a megapixel, a video so many frames of it: small ones, so that what does not fit
/// with them does not fit at all.
const IMAGE: u64 = 1 << 20;
const FRAMES: u64 = 32;
/// Half a minute of sound, 16,000 samples a second of four bytes.
const SOUND: u64 = 30 * 16_000 * 4;
/// Requests that are prepared at once: a server that batches takes many more.
const AT_ONCE: u64 = 8;
/// Without a plan: what an engine's processes take at least.
const PROCESSES: u64 = 2 * GIB;

/// What a prompt may bring, in words, and its bytes when it is decoded.
fn prompt(s: &Server<'_>) -> Option<(String, u64)> {
    let words: Vec<String> = list(s.c, "/command").iter().chain(list(s.c, "/args")).map(text_of).collect();
    let env: Vec<(String, String)> = list(s.c, "/env")
        .iter()
        .map(|e| (str_at(e, "/name").to_owned(), str_at(e, "/value").to_owned()))
        .collect();
    let given = split(&words, &env)
        .into_iter()
        .find_map(|command| value(&flags(&command, &[]), &LIMITS).map(str::to_owned))?;
    let limits: Vec<(String, Value)> = match serde_json::from_str(&given) {
        Ok(Value::Object(map)) => map.into_iter().collect(),
        // Older releases: `image=4,video=1`.
        _ => given
            .split(',')
            .filter_map(|p| p.split_once('='))
            .map(|(k, v)| (k.to_owned(), number(v)))
            .collect(),
    };
    let mut bytes = 0_u64;
    let mut names = Vec::new();
    for (kind, limit) in &limits {
        let of = |key: &str| limit.get(key).and_then(Value::as_u64);
        let Some(count) = of("count").or_else(|| limit.as_u64()).filter(|n| *n > 0) else { continue };
        let frame =
            of("width").unwrap_or(1 << 10).saturating_mul(of("height").unwrap_or(1 << 10)).min(IMAGE << 10);
        let each = match kind.as_str() {
            "image" => frame.saturating_mul(PIXEL),
            "video" => frame.saturating_mul(PIXEL).saturating_mul(of("num_frames").unwrap_or(FRAMES)),
            "audio" => of("length").map_or(SOUND, |samples| samples.saturating_mul(4)),
            _ => continue,
        };
        bytes = bytes.saturating_add(each.saturating_mul(count));
        names.push(format!("{kind} {count}"));
    }
    (bytes > 0).then(|| (names.join(", "), bytes))
}

fn number(text: &str) -> Value {
    text.trim().parse::<u64>().map_or(Value::Null, Value::from)
}

/// What the limit leaves beside the processes of the engine; at most, so that what is beyond it is so for certain.
fn room(s: &Server<'_>) -> Option<(Bytes, u64)> {
    let limit = super::host::amount(s.c.pointer("/resources/limits/memory"))?;
    let host = s.plan.as_ref().and_then(|p| p.host.as_ref());
    let taken = host.map_or(PROCESSES, |h| h.stages.processes.low);
    Some((limit, limit.0.saturating_sub(taken)))
}

pub(super) fn payload_beyond_limit(s: &Server<'_>) -> Option<Said> {
    let (names, each) = prompt(s)?;
    let (limit, room) = room(s)?;
    let all = each.saturating_mul(AT_ONCE);
    if all <= room {
        return None;
    }
    let message = format!(
        "a prompt may bring {names}, {} once it is decoded, and {AT_ONCE} such prompts at once {}: the memory limit of {limit} \
         leaves {} beside the engine",
        Bytes(each),
        Bytes(all),
        Bytes(room)
    );
    let fix = format!(
        "set lower counts in {} or {}, and bound the size of requests in front of the server; or a limit above {}Gi",
        LIMITS[0],
        LIMITS[1],
        all.saturating_add(limit.0 - room).div_ceil(GIB)
    );
    Some(Said::new(message, fix).at("/args"))
}

/// Processed images are kept by each API server and by each engine of vLLM.
pub(super) fn processor_cache_beyond_limit(s: &Server<'_>) -> Option<Said> {
    let plan = s.plan.as_ref()?;
    let (line, l) = (plan.line(), &plan.line().launch);
    let sees = plan.model.as_ref().is_some_and(|m| m.model.encoder.is_some());
    // By its own flag it is meant to be used; else only a model that sees fills it.
    let each = l.mm_processor_cache_bytes.or_else(|| sees.then_some(4 * GIB))?;
    if l.language_model_only || line.host.shm_processor_cache {
        return None;
    }
    let copies = l.api_servers.max(1).saturating_add(l.dp.max(1));
    let all = each.saturating_mul(copies);
    let (limit, room) = room(s)?;
    if all <= room || all < 64 * MIB {
        return None;
    }
    let message = format!(
        "processed images are kept up to {} by each of {} API servers and {} engines, {} in all, and the memory limit of {limit} \
         leaves {} beside the engine: it fills with the images that come, hours after the start",
        Bytes(each),
        l.api_servers.max(1),
        l.dp.max(1),
        Bytes(all),
        Bytes(room)
    );
    let fix = format!(
        "set --mm-processor-cache-gb {:.1}, or 0 where images seldom repeat; or a limit above {}Gi",
        room as f64 / 2.0 / copies as f64 / GIB as f64,
        all.saturating_add(limit.0 - room).div_ceil(GIB)
    );
    Some(Said::new(message, fix).at("/args"))
}
