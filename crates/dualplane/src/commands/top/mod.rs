//! `dualplane top`: both planes of each container, live or out of a bundle.
//!
//! `live.rs` and `replay.rs` make frames (`frame.rs`), `model.rs` is the state of the screen, `draw/` makes lines of it,
//! `terminal.rs` is the only file that knows a terminal.

mod draw;
mod frame;
#[cfg(target_os = "linux")]
mod history;
#[cfg(target_os = "linux")]
mod live;
mod model;
mod print;
mod replay;
mod terminal;

#[cfg(test)]
mod tests;

use std::io::{self, IsTerminal};

use dualplane_base::json::pretty;
use dualplane_core::knowledge::Knowledge;

use self::draw::Theme;
use self::frame::Frame;
use self::model::{Model, Replay};
use self::terminal::Source;
use super::Failure;
use crate::args::{TopArgs, TopFormat};
use crate::exit::{self, Code};
use crate::output;

/// Frames a second of a replay when it begins.
const SPEED: u32 = 4;

pub(crate) fn run(args: &TopArgs) -> Result<Code, Failure> {
    let knowledge = Knowledge::embedded()?;
    let theme = Theme { colour: output::style(args.color, false).colour };
    let mut model = Model::new(args.sort, args.namespace.clone(), args.filter.clone());
    let dumb = std::env::var_os("TERM").is_none_or(|t| t == "dumb" || t.is_empty());
    let terminal = io::stdout().is_terminal() && io::stdin().is_terminal() && !dumb;
    let once = args.once || args.output == TopFormat::Json || !terminal;
    if let Some(path) = &args.replay {
        let recording = replay::read(path, &knowledge)?;
        let (len, death) = (recording.frames.len(), recording.death);
        let at = if once { death.unwrap_or(len - 1) } else { 0 };
        model.replay = Some(Replay { at, len, death, speed: if once { 0 } else { SPEED } });
        let mut source = Source::Replay(recording);
        source.show(&mut model, at);
        return if once { print(args, &model, theme) } else { terminal::run(&mut source, &mut model, theme) };
    }
    live(args, &knowledge, &mut model, theme, once)
}

#[cfg(target_os = "linux")]
fn live(
    args: &TopArgs,
    knowledge: &Knowledge,
    model: &mut Model,
    theme: Theme,
    once: bool,
) -> Result<Code, Failure> {
    let mut live = live::Live::start(args, knowledge, once)?;
    model.begin(live.history(args.interval));
    if once {
        model.show(live.once(&if args.output == TopFormat::Json {
            live::Focus::All
        } else {
            live::Focus::One(None)
        }));
        return print(args, model, theme);
    }
    terminal::run(&mut Source::Live(Box::new(live)), model, theme)
}

#[cfg(not(target_os = "linux"))]
fn live(_: &TopArgs, _: &Knowledge, _: &mut Model, _: Theme, _: bool) -> Result<Code, Failure> {
    let why = "reading a machine needs Linux; --replay BUNDLE works everywhere".to_owned();
    Err(Failure::Flag { flag: "top", why })
}

/// One frame on standard output.
fn print(args: &TopArgs, model: &Model, theme: Theme) -> Result<Code, Failure> {
    match args.output {
        TopFormat::Json => {
            let containers = model.rows().into_iter().cloned().collect();
            let shown = Frame { containers, ..model.frame.clone() };
            output::write(&pretty(&shown)?)?;
        }
        TopFormat::Text => {
            output::write(&print::text(&draw::once(model, theme, output::columns()), theme))?;
        }
    }
    Ok(exit::OK)
}
