//! The state of the screen: what is shown, selected and sorted. Pure: keys and frames go in, [`UiAction`] comes out.

use dualplane_base::order::Order as _;
use std::collections::{HashMap, VecDeque};

use super::frame::{Container, Frame};
use crate::args::SortBy;

/// Points of a trend: five minutes at a second.
pub(super) const MAX_POINTS: usize = 300;
/// Characters of a filter.
const MAX_FILTER: usize = 64;
/// Rows of a page.
const PAGE: isize = 10;

/// A key, without the terminal's many ways to say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Escape,
    Backspace,
    /// Ctrl-C.
    Stop,
}

/// What the screen wants of the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UiAction {
    Nothing,
    Quit,
    /// A reading now, although it is paused.
    Step,
    /// Another frame of the replay.
    Show(usize),
    /// The processes of another container.
    Focus,
}

/// Where a replay stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Replay {
    pub(crate) at: usize,
    pub(crate) len: usize,
    /// The frame in which the container died.
    pub(crate) death: Option<usize>,
    /// Frames a second; 0 where only one is printed.
    pub(crate) speed: u32,
}

/// Shares of both planes of one container, 0 to 1.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Trend {
    pub(crate) host: VecDeque<Option<f64>>,
    pub(crate) vram: VecDeque<Option<f64>>,
}

/// The screen.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) frame: Frame,
    pub(crate) trends: HashMap<String, Trend>,
    pub(crate) sort: SortBy,
    pub(crate) filter: String,
    pub(crate) namespace: Option<String>,
    /// The filter is being typed.
    pub(crate) typing: bool,
    pub(crate) paused: bool,
    pub(crate) help: bool,
    /// The container whose processes are shown.
    pub(crate) detail: bool,
    /// Line at which the detail begins.
    pub(crate) scroll: usize,
    /// Id of the selected container.
    pub(crate) selected: Option<String>,
    pub(crate) replay: Option<Replay>,
}

impl Model {
    pub(crate) fn new(sort: SortBy, namespace: Option<String>, filter: Option<String>) -> Self {
        Self {
            frame: Frame::default(),
            trends: HashMap::new(),
            sort,
            filter: filter.unwrap_or_default().to_lowercase(),
            namespace,
            typing: false,
            paused: false,
            help: false,
            detail: false,
            scroll: 0,
            selected: None,
            replay: None,
        }
    }

    /// Takes a new frame in.
    pub(crate) fn show(&mut self, mut frame: Frame) {
        if let Some(own) = &self.namespace {
            frame.incidents.retain(|i| i.name.split('/').next() == Some(own));
        }
        for c in &frame.containers {
            let t = self.trends.entry(c.id.clone()).or_default();
            push(&mut t.host, c.share());
            push(&mut t.vram, c.vram_share());
        }
        self.trends.retain(|id, _| frame.containers.iter().any(|c| c.id == *id));
        self.frame = frame;
    }

    /// Takes in what was recorded before the first frame.
    pub(crate) fn begin(&mut self, trends: HashMap<String, Trend>) {
        self.trends = trends;
    }

    /// Begins the trends anew, as a replay jumps.
    pub(crate) fn forget(&mut self) {
        self.trends.clear();
    }

    /// Containers that are shown, in order.
    pub(crate) fn rows(&self) -> Vec<&Container> {
        let mut rows: Vec<&Container> = self
            .frame
            .containers
            .iter()
            .filter(|c| self.namespace.is_none() || c.namespace == self.namespace)
            .filter(|c| self.filter.is_empty() || c.name.to_lowercase().contains(&self.filter))
            .collect();
        let down = |a: Option<f64>, b: Option<f64>| b.unwrap_or(-1.0).total_cmp(&a.unwrap_or(-1.0));
        let vram = |c: &Container| c.vram_used().map(|v| v as f64);
        let kv = |c: &Container| c.engine.as_ref().and_then(|e| e.kv_use);
        rows.order_by(|a, b| {
            let by = match self.sort {
                SortBy::Memory => down(a.share(), b.share()).then(b.working_set.cmp(&a.working_set)),
                SortBy::Vram => down(vram(a), vram(b)),
                SortBy::Kv => down(kv(a), kv(b)),
                SortBy::Name => std::cmp::Ordering::Equal,
            };
            by.then_with(|| a.name.cmp(&b.name)).then_with(|| a.id.cmp(&b.id))
        });
        rows
    }

    /// The selected row: a container that is gone or filtered leaves its place to the first.
    pub(crate) fn row(&self) -> usize {
        let rows = self.rows();
        self.selected.as_ref().and_then(|id| rows.iter().position(|c| c.id == *id)).unwrap_or(0)
    }

    /// The container that is selected.
    pub(crate) fn focus(&self) -> Option<&Container> {
        self.rows().get(self.row()).copied()
    }

    /// Takes a key.
    pub(crate) fn update(&mut self, key: Key) -> UiAction {
        if key == Key::Stop {
            return UiAction::Quit;
        }
        if self.typing {
            return self.type_filter(key);
        }
        if self.help {
            self.help = false;
            return if key == Key::Char('q') { UiAction::Quit } else { UiAction::Nothing };
        }
        if let Some(replay) = self.replay
            && let Some(ask) = self.seek(replay, key)
        {
            return ask;
        }
        match key {
            Key::Char('q') => return UiAction::Quit,
            Key::Escape if self.detail => self.detail = false,
            Key::Escape if !self.filter.is_empty() => self.filter.clear(),
            Key::Escape => {}
            Key::Char('?' | 'h') => self.help = true,
            Key::Char('/') => self.typing = true,
            Key::Char('s') => {
                self.sort = match self.sort {
                    SortBy::Memory => SortBy::Vram,
                    SortBy::Vram => SortBy::Kv,
                    SortBy::Kv => SortBy::Name,
                    SortBy::Name => SortBy::Memory,
                };
            }
            Key::Char('p') => self.paused = !self.paused,
            Key::Char(' ') => {
                self.paused = true;
                return UiAction::Step;
            }
            Key::Enter => {
                self.detail = !self.detail;
                self.scroll = 0;
                return UiAction::Focus;
            }
            Key::Up | Key::Char('k') => return self.go(-1),
            Key::Down | Key::Char('j') => return self.go(1),
            Key::PageUp => return self.go(-PAGE),
            Key::PageDown => return self.go(PAGE),
            Key::Home | Key::Char('g') => return self.go(isize::MIN),
            Key::End | Key::Char('G') => return self.go(isize::MAX),
            _ => {}
        }
        UiAction::Nothing
    }

    fn type_filter(&mut self, key: Key) -> UiAction {
        match key {
            Key::Enter => self.typing = false,
            Key::Escape => {
                self.typing = false;
                self.filter.clear();
            }
            Key::Backspace => {
                self.filter.pop();
            }
            Key::Char(c) if !c.is_control() && self.filter.chars().count() < MAX_FILTER => {
                self.filter.extend(c.to_lowercase());
            }
            _ => {}
        }
        UiAction::Nothing
    }

    fn seek(&mut self, r: Replay, key: Key) -> Option<UiAction> {
        let last = r.len.saturating_sub(1);
        let to = match key {
            Key::Left => r.at.saturating_sub(1),
            Key::Right | Key::Char(' ') => (r.at + 1).min(last),
            Key::Home => 0,
            Key::End => last,
            Key::Char('d') => r.death.unwrap_or(last),
            Key::Char('+') => {
                self.speed(r.speed.saturating_mul(2));
                return Some(UiAction::Nothing);
            }
            Key::Char('-') => {
                self.speed(r.speed / 2);
                return Some(UiAction::Nothing);
            }
            _ => return None,
        };
        self.paused = true;
        Some(UiAction::Show(to))
    }

    fn speed(&mut self, speed: u32) {
        if let Some(r) = &mut self.replay {
            r.speed = speed.clamp(1, 64);
        }
    }

    /// Moves the selection, in a detail the lines.
    fn go(&mut self, by: isize) -> UiAction {
        if self.detail {
            // A bound that no list of processes reaches; drawing cuts it to what is there.
            self.scroll = self.scroll.saturating_add_signed(by.clamp(-4096, 4096)).min(4096);
            return UiAction::Nothing;
        }
        let to = self.row().saturating_add_signed(by);
        let rows = self.rows();
        self.selected = rows.get(to.min(rows.len().saturating_sub(1))).map(|c| c.id.clone());
        UiAction::Focus
    }
}

fn push(points: &mut VecDeque<Option<f64>>, value: Option<f64>) {
    if points.len() == MAX_POINTS {
        points.pop_front();
    }
    points.push_back(value);
}
