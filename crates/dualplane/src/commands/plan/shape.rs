//! `--traffic PROFILE`, `--shape FILE`: what is said of the requests that will come.

use std::fs;
use std::path::Path;

use dualplane_plan::traffic::{Shape, Traffic, names};

use super::Failure;
use crate::args::PlanArgs;
use crate::document;

/// A histogram of ten thousand cells is smaller.
const MAX_FILE: u64 = 1 << 20;

/// `--traffic chat --concurrency 64`, or `--shape FILE`.
pub(super) fn asked(args: &PlanArgs) -> Result<Option<Traffic>, Failure> {
    if args.concurrency == Some(0) {
        return Err(Failure::Flag { flag: "--concurrency", why: "0 requests".into() });
    }
    let found = match (&args.traffic, &args.shape) {
        (Some(name), _) => named(name)?,
        (None, Some(path)) => {
            let shape = read(path)?;
            let made = args.concurrency.map_or_else(|| Traffic::of(&shape), |n| Traffic::with(&shape, n));
            made.map_err(|why| Failure::Flag { flag: "--shape", why: format!("{}: {why}", path.display()) })?
        }
        (None, None) if args.concurrency.is_some() => {
            let why = "of which requests? give --traffic PROFILE or --shape FILE beside it".into();
            return Err(Failure::Flag { flag: "--concurrency", why });
        }
        (None, None) => return Ok(None),
    };
    Ok(Some(match args.concurrency {
        Some(n) => found.at_once(n),
        None => found,
    }))
}

fn named(name: &str) -> Result<Traffic, Failure> {
    Traffic::named(name).ok_or_else(|| Failure::Flag {
        flag: "--traffic",
        why: format!("`{name}` is no profile; there are {}", names().collect::<Vec<_>>().join(", ")),
    })
}

/// The shape of a file, TOML by its name and else JSON.
pub(crate) fn read(path: &Path) -> Result<Shape, Failure> {
    let failed = |source| Failure::Unreadable { path: path.to_owned(), source };
    let wrong = |why: String| Failure::Flag { flag: "--shape", why: format!("{}: {why}", path.display()) };
    if fs::metadata(path).map_err(failed)?.len() > MAX_FILE {
        return Err(wrong("it is larger than any shape".into()));
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    if let Some(other) = document::other(path, &text, "shape") {
        return Err(wrong(other));
    }
    let shape: Shape = if path.extension().is_some_and(|e| e == "toml") {
        toml::from_str(&text).map_err(|e| wrong(e.to_string()))?
    } else {
        serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?
    };
    shape.check().map_err(wrong)?;
    Ok(shape)
}
