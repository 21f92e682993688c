//! Words for what logs show, and what they do not.

use dualplane_base::text::counted;
use dualplane_base::time::span;
use dualplane_core::verdict::proof::Log;

pub(super) fn sentence(proof: &Log) -> String {
    match proof {
        Log::ServedOn => "the server kept serving long after it".to_owned(),
        Log::ServedForAWhile { lines, ms, lived_on } => {
            let time = ms.map(|ms| format!(" and {}", span(ms))).unwrap_or_default();
            let taken = if *lived_on {
                "it is taken to have lived on, but this error may still be the one that ended it"
            } else {
                "it is taken for what was under way, but the server may have recovered and ended of something else"
            };
            format!("close: after this error the server answered for {}{time}; {taken}", counted(*lines, "line"))
        }
        Log::LongBeforeTheKill { ms } => {
            format!("close: {} lie between this error and the kill; one need not have caused the other", span(*ms))
        }
        Log::UpAfter(lines) => format!("the server was up {} after it", counted(*lines, "line")),
        Log::Unrecognised => "judged by the wording of an unrecognised exception".to_owned(),
        Log::Doubt(words) => words.clone(),
        Log::CutTraceback => {
            "this traceback lacks its last line, which names the error: the engine failed by itself, and that may \
            have come first. The whole log shows it (kubectl logs --previous)"
                .to_owned()
        }
        Log::Fallback => "the engine has a fallback for it, and nothing failed as a result".to_owned(),
        Log::OtherZone { zone_ms } => format!(
            "the clock of this log differs from the API's by {:+} h; assumed to be a time zone difference and \
            corrected",
            *zone_ms as f64 / -3_600_000.0
        ),
        Log::NoVramError { lines, files } => {
            format!("no VRAM error in {} of {}", counted(*lines, "log line"), counted(*files, "file"))
        }
        Log::NothingKnown { lines } => format!("{} of which none is known", counted(*lines, "line")),
        Log::Unreadable(why) => why.clone(),
        Log::NoMemoryError { lines } => {
            format!("{} without a memory error; they do not say how it ended", counted(*lines, "log line"))
        }
        Log::QuietKernel { lines } => {
            format!("{} without an OOM kill or GPU fault", counted(*lines, "kernel log line"))
        }
    }
}
