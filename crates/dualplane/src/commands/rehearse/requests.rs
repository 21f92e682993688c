//! Requests of a rehearsal: single ones of a trace, or drawn from a shape.

use std::fs;
use std::path::Path;

use dualplane_rehearse::{Prefix, Request, trace};
use dualplane_shape::{Play, Shape};

use super::super::plan::shape;
use super::Failure;
use super::incident::Told;
use crate::args::RehearseArgs;

/// Bytes of a trace.
const MAX_TRACE: u64 = 1 << 30;
/// Requests that are drawn.
const MOST: usize = 2_000_000;

/// The requests of one server, where they are from, and the seed.
pub(super) fn asked(
    args: &RehearseArgs,
    told: Option<&Told>,
    replicas: u32,
) -> Result<(Vec<Request>, String, Option<u64>), Failure> {
    let (all, source, seed) = match (&args.trace, &args.shape, &args.traffic) {
        (Some(path), ..) => (read(path)?, path.display().to_string(), None),
        (_, Some(path), _) => {
            let shape = shape::read(path)?;
            (draw(args, &shape, "--shape")?, path.display().to_string(), Some(args.seed))
        }
        (_, _, Some(name)) => {
            let names = || dualplane_shape::names().collect::<Vec<_>>().join(", ");
            let shape = dualplane_shape::named(name).ok_or_else(|| Failure::Flag {
                flag: "--traffic",
                why: format!("`{name}` is no profile; there are {}", names()),
            })?;
            (draw(args, &shape, "--traffic")?, format!("{name} requests"), Some(args.seed))
        }
        (None, None, None) if told.is_some() => {
            let shape = told.map(|t| t.shape.as_ref()).transpose().map_err(|why| {
                Failure::NoRequests(format!(
                    "{why}. A bundle tells of requests where it has the engine's metrics or its log with lines of single \
                     requests; else give the load with --shape FILE, --trace FILE or --traffic PROFILE beside --incident"
                ))
            })?;
            let drawn = shape.map(|s| draw(args, s, "--incident")).transpose()?.unwrap_or_default();
            (drawn, "requests as the bundle tells of them".into(), Some(args.seed))
        }
        (None, None, None) => {
            let why = "of which requests? give --traffic PROFILE, --shape FILE or --trace FILE; `dualplane profile` makes a \
                       shape of logs and metrics"
                .into();
            return Err(Failure::Flag { flag: "--traffic", why });
        }
    };
    // Each of several servers gets its turn.
    let one = all.into_iter().step_by(replicas.max(1) as usize).collect();
    Ok((one, source, seed))
}

fn read(path: &Path) -> Result<Vec<Request>, Failure> {
    let failed = |source| Failure::Unreadable { path: path.to_owned(), source };
    let wrong = |why: String| Failure::Flag { flag: "--trace", why: format!("{}: {why}", path.display()) };
    if fs::metadata(path).map_err(failed)?.len() > MAX_TRACE {
        return Err(wrong("it is too large; rehearse a part of it".into()));
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    trace::read(&text).map_err(|e| wrong(e.to_string()))
}

fn draw(args: &RehearseArgs, shape: &Shape, flag: &'static str) -> Result<Vec<Request>, Failure> {
    let wrong = |why: String| Failure::Flag { flag, why };
    let play = Play { seconds: Some(args.seconds), rate: args.rate, ..Play::default() };
    let drawn = shape.draw(args.seed, play).map_err(wrong)?;
    if !drawn.open() {
        let why = "the shape does not say how many requests arrive a second".into();
        return Err(Failure::Flag { flag: "--rate", why });
    }
    let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let all: Vec<Request> = drawn
        .take(MOST + 1)
        .map(|r| Request {
            at: r.at,
            input: small(r.input),
            output: small(r.output),
            prefix: (r.prefix_tokens > 0)
                .then_some(Prefix { group: small(r.prefix), tokens: small(r.prefix_tokens) }),
            cancel_tokens: r.cancel_after.map(small),
            tenant: r.tenant,
            ..Request::default()
        })
        .collect();
    if all.len() > MOST {
        return Err(Failure::Flag {
            flag: "--seconds",
            why: format!("more than {MOST} requests; give fewer seconds or a lower --rate"),
        });
    }
    if all.is_empty() {
        return Err(Failure::Flag { flag: "--seconds", why: "no request arrives in so short a time".into() });
    }
    Ok(all)
}
