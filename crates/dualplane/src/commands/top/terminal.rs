//! The terminal: keys, time and signals. It is given back in every case: an error, a panic, Ctrl-C, SIGTERM.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::draw::{self, Theme};
use super::model::{Key, Model, UiAction};
use super::replay::Recording;
use crate::commands::Failure;
use crate::exit::{self, Code};

/// The longest wait for a key, so that a signal is noticed.
const BEAT: Duration = Duration::from_millis(200);
/// Points of the trends that a jump of a replay makes anew.
const BEFORE: usize = 300;

/// Where frames come from.
pub(super) enum Source<'k> {
    #[cfg(target_os = "linux")]
    Live(Box<super::live::Live<'k>>),
    Replay(Recording),
    /// Keeps the lifetime where there is no live view.
    #[cfg(not(target_os = "linux"))]
    #[allow(dead_code)]
    None(&'k ()),
}

/// Gives the terminal back.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        // A terminal that went away cannot be restored, nor told so.
        let _ = ratatui::try_restore();
    }
}

/// Shows frames until somebody quits.
pub(super) fn run(source: &mut Source<'_>, model: &mut Model, theme: Theme) -> Result<Code, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    #[cfg(unix)]
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP, signal_hook::consts::SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(Failure::Output)?;
    }
    // Installs a hook that restores the terminal before a panic prints.
    let mut terminal = ratatui::try_init().map_err(Failure::Output)?;
    let _restore = Restore;
    let events = events().map_err(Failure::Runtime)?;
    let mut last = Instant::now();
    let mut dirty = true;
    source.begin(model);
    while !stop.load(Ordering::Relaxed) {
        let mut wait = source.wait(model, last);
        if wait.is_zero() {
            source.go_on(model);
            last = Instant::now();
            dirty = true;
            wait = source.wait(model, last);
        }
        if dirty {
            terminal.draw(|frame| draw::screen(model, theme, frame)).map_err(Failure::Output)?;
        }
        let event = events.recv_timeout(wait.min(BEAT));
        dirty = event.is_ok();
        match event {
            Ok(Event::Key(k)) if k.kind != KeyEventKind::Release => match key(k).map(|k| model.update(k)) {
                Some(UiAction::Quit) => break,
                Some(UiAction::Show(at)) => source.show(model, at),
                Some(UiAction::Step) => source.go_on(model),
                Some(UiAction::Focus) => source.focus(model),
                Some(UiAction::Nothing) | None => {}
            },
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    Ok(exit::OK)
}

/// Keys are read in a thread of their own: once a terminal has hung up, the reading never returns, and a signal or the next
/// drawing must still end the program.
fn events() -> std::io::Result<Receiver<Event>> {
    let (tell, events) = sync_channel(64);
    thread::Builder::new().name("keys".into()).spawn(move || {
        while let Ok(event) = event::read() {
            if tell.send(event).is_err() {
                break;
            }
        }
    })?;
    Ok(events)
}

fn key(k: KeyEvent) -> Option<Key> {
    Some(match k.code {
        KeyCode::Char('c' | 'd') if k.modifiers.contains(KeyModifiers::CONTROL) => Key::Stop,
        KeyCode::Char(_) if k.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => return None,
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        _ => return None,
    })
}

impl Source<'_> {
    /// Before the first frame is drawn.
    fn begin(&mut self, model: &mut Model) {
        match self {
            #[cfg(target_os = "linux")]
            Self::Live(_) => self.go_on(model),
            _ => self.focus(model),
        }
    }

    /// Until the next frame.
    fn wait(&self, model: &Model, last: Instant) -> Duration {
        if model.paused {
            return BEAT;
        }
        match (self, model.replay) {
            #[cfg(target_os = "linux")]
            (Self::Live(live), _) => live.wait(),
            (_, Some(r)) if r.at + 1 < r.len => {
                (Duration::from_secs(1) / r.speed.max(1)).saturating_sub(last.elapsed())
            }
            _ => BEAT,
        }
    }

    /// The next frame.
    fn go_on(&mut self, model: &mut Model) {
        match self {
            #[cfg(target_os = "linux")]
            Self::Live(live) => {
                live.round();
                let id = model.focus().map(|c| c.id.clone());
                let frame = live.frame(&super::live::Focus::One(id.as_deref().filter(|_| model.detail)));
                model.show(frame);
            }
            _ => {
                let next = model.replay.map_or(0, |r| r.at + 1);
                self.show(model, next);
            }
        }
    }

    /// Another container is looked at: its processes are listed.
    fn focus(&mut self, model: &mut Model) {
        match self {
            #[cfg(target_os = "linux")]
            Self::Live(live) if model.detail => {
                let id = model.focus().map(|c| c.id.clone());
                model.frame = live.frame(&super::live::Focus::One(id.as_deref()));
            }
            _ => {}
        }
    }

    /// A frame of a replay.
    pub(super) fn show(&mut self, model: &mut Model, at: usize) {
        let (Self::Replay(recording), Some(r)) = (&*self, &mut model.replay) else { return };
        let at = at.min(r.len.saturating_sub(1));
        let onward = r.at + 1 == at && !model.trends.is_empty();
        r.at = at;
        let from = if onward {
            at
        } else {
            model.forget();
            at.saturating_sub(BEFORE - 1)
        };
        for frame in recording.frames.iter().skip(from).take(at + 1 - from) {
            model.show(frame.clone());
        }
    }
}
