//! The screen without a terminal: keys go in, ratatui's buffer comes out.

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::draw::{self, Theme};
use super::frame::{Container, Engine, Frame, Gpu, Holder, Incident, Node, Process, Vram};
use super::model::{Key, Model, Replay, UiAction};
use crate::args::SortBy;

const GIB: u64 = 1 << 30;

fn container(name: &str, used: u64, limit: Option<u64>, vram: &[u64]) -> Container {
    Container {
        id: format!("/{name}"),
        name: name.into(),
        namespace: name.split('/').next().map(str::to_owned),
        limit: limit.map(|l| l * GIB),
        working_set: Some(used * GIB),
        usage: Some((used + 1) * GIB),
        peak: limit.map(|l| l * GIB - 1),
        anon: Some(used * GIB / 2),
        oom_kills: Some(0),
        vram: vram
            .iter()
            .enumerate()
            .map(|(i, v)| Vram { gpu: i.to_string(), used: Some(v * GIB), total: Some(80 * GIB) })
            .collect(),
        ..Container::default()
    }
}

fn frame() -> Frame {
    let mut llm = container("serving/llm-0/vllm", 11, Some(12), &[70, 71]);
    llm.engine = Some(Engine {
        name: "vllm".into(),
        kv_use: Some(0.97),
        running: Some(41.0),
        waiting: Some(7.0),
        ..Engine::default()
    });
    llm.processes = vec![Process {
        pid: 4242,
        comm: "python3".into(),
        command: "vllm serve a/b".into(),
        anon: Some(GIB),
        ..Process::default()
    }];
    Frame {
        at: "2026-11-21T22:39:24Z".into(),
        node: Node {
            name: "gpu-a".into(),
            total: Some(128 * GIB),
            available: Some(64 * GIB),
            ..Node::default()
        },
        gpus: (0..2)
            .map(|i| Gpu {
                index: i.to_string(),
                total: Some(80 * GIB),
                used: Some(72 * GIB),
                other: Some(2 * GIB),
                throttled: Some(i == 1),
                holders: vec![Holder {
                    pid: 4242,
                    container: Some("serving/llm-0/vllm".into()),
                    used: Some(70 * GIB),
                }],
                ..Gpu::default()
            })
            .collect(),
        containers: vec![
            container("tools/embed-0/tei", 3, Some(100), &[5]),
            llm,
            container("evil\u{1b}[31m/\u{202e}pod/x", 1, None, &[]),
        ],
        incidents: vec![Incident {
            at: "2026-11-21T22:00:00Z".into(),
            name: "serving/llm-0/vllm".into(),
            class: Some("host_oom_killed".into()),
            trigger: Some("Memory cgroup out of memory".into()),
        }],
        gaps: vec!["GPUs: none".into()],
        ..Frame::default()
    }
}

fn model() -> Model {
    let mut m = Model::new(SortBy::Memory, None, None);
    m.show(frame());
    m
}

fn drawn(m: &Model, width: u16, height: u16) -> Vec<String> {
    let mut t = Terminal::new(TestBackend::new(width, height)).unwrap();
    t.draw(|f| draw::screen(m, Theme { colour: true }, f)).unwrap();
    let buffer = t.backend().buffer().clone();
    (0..height)
        .map(|y| {
            let row: String = (0..width).map(|x| buffer[(x, y)].symbol().to_owned()).collect();
            assert!(!row.contains('\u{1b}'), "an escape reached the screen: {row:?}");
            row.trim_end().to_owned()
        })
        .collect()
}

fn has(lines: &[String], text: &str) -> bool {
    lines.iter().any(|l| l.contains(text))
}

fn row_of(lines: &[String], text: &str) -> usize {
    lines.iter().position(|l| l.contains(text)).unwrap_or_else(|| panic!("no {text} in {lines:#?}"))
}

#[test]
fn a_wide_screen_shows_both_planes() {
    let lines = drawn(&model(), 160, 30);
    assert!(lines[0].starts_with("dualplane top  gpu-a  2026-11-21T22:39:24Z"), "{}", lines[0]);
    assert!(has(&lines, "64.0G/128G 50%") && has(&lines, "GPU 1") && has(&lines, "THROTTLED"));
    assert!(has(&lines, "other 2.0G") && has(&lines, "llm-0/vllm 70.0G"));
    let row = &lines[row_of(&lines, "serving/llm-0/vllm ")];
    for part in ["11.0G/12.0G  92%", "141G", "97%", "41/7", "▇▇"] {
        assert!(row.contains(part), "{part} is not in {row}");
    }
    assert!(row_of(&lines, "serving/llm-0/vllm ") < row_of(&lines, "tools/embed-0/tei"), "the fullest first");
    assert!(has(&lines, "evil\\u{1b}[31m"), "{lines:#?}");
    assert!(has(&lines, "host_oom_killed") && has(&lines, "! GPUs: none"));
    assert!(lines.last().unwrap().starts_with("q quit"));
}

#[test]
fn narrow_and_low_screens_keep_what_matters() {
    let lines = drawn(&model(), 80, 24);
    let row = &lines[row_of(&lines, "serving/llm-0/vllm")];
    assert!(row.contains("11.0G/12.0G  92%") && row.contains("141G") && row.contains("97%"), "{row}");
    let lines = drawn(&model(), 40, 10);
    assert!(has(&lines, "92%   0   141G"), "both planes: {lines:#?}");
    let mut m = model();
    m.replay = Some(Replay { at: 0, len: 3, death: Some(2), speed: 1 });
    for detail in [false, true] {
        for help in [false, true] {
            (m.detail, m.help) = (detail, help);
            for (w, h) in [(1, 1), (2, 3), (7, 5), (12, 8), (20, 40), (39, 9), (40, 10), (300, 4), (300, 100)]
            {
                drawn(&m, w, h);
            }
        }
    }
    let mut none = Model::new(SortBy::Memory, None, None);
    none.show(Frame::default());
    assert!(has(&drawn(&none, 80, 24), "no containers"));
}

#[test]
fn many_gpus_and_containers_keep_the_selection_in_sight() {
    let mut f = frame();
    f.gpus = (0..16).map(|i| Gpu { index: i.to_string(), ..Gpu::default() }).collect();
    f.containers = (0..200).map(|i| container(&format!("ns/pod-{i:03}/c"), 1, Some(10), &[])).collect();
    let mut m = Model::new(SortBy::Name, None, None);
    m.show(f);
    for _ in 0..150 {
        m.update(Key::Down);
    }
    let lines = drawn(&m, 100, 24);
    assert!(has(&lines, "pod-150") && has(&lines, "and 11 more GPUs"), "{lines:#?}");
    m.update(Key::End);
    assert!(has(&drawn(&m, 100, 24), "pod-199"));
    m.update(Key::PageUp);
    assert_eq!(m.focus().unwrap().name, "ns/pod-189/c");
    m.update(Key::Home);
    assert_eq!(m.row(), 0);
}

#[test]
fn keys_sort_filter_pause_and_show_details() {
    let mut m = model();
    assert_eq!(m.focus().unwrap().name, "serving/llm-0/vllm");
    assert_eq!(m.update(Key::Enter), UiAction::Focus);
    let lines = drawn(&m, 100, 30);
    assert!(
        has(&lines, "vllm serve a/b") && has(&lines, "GPU 1") && has(&lines, "running 41  waiting 7"),
        "{lines:#?}"
    );
    m.update(Key::Escape);
    assert!(!m.detail);
    let order: Vec<SortBy> = (0..4)
        .map(|_| {
            m.update(Key::Char('s'));
            m.sort
        })
        .collect();
    assert_eq!(order, [SortBy::Vram, SortBy::Kv, SortBy::Name, SortBy::Memory]);
    m.update(Key::Char('/'));
    for c in "EmQ".chars() {
        m.update(Key::Char(c));
    }
    assert!(m.rows().is_empty() && has(&drawn(&m, 80, 24), "/emq_"), "q is text here");
    m.update(Key::Backspace);
    m.update(Key::Enter);
    assert_eq!(m.rows().len(), 1);
    m.update(Key::Escape);
    assert_eq!(m.rows().len(), 3);
    m.update(Key::Char('p'));
    assert!(m.paused && has(&drawn(&m, 80, 24), "paused"));
    assert_eq!(m.update(Key::Char(' ')), UiAction::Step);
    m.update(Key::Char('?'));
    assert!(has(&drawn(&m, 80, 24), "Keys"));
    assert_eq!(m.update(Key::Char('x')), UiAction::Nothing);
    assert!(!m.help);
    assert_eq!(m.update(Key::Char('q')), UiAction::Quit);
    m.typing = true;
    assert_eq!(m.update(Key::Stop), UiAction::Quit, "Ctrl-C quits whatever is typed");
}

#[test]
fn the_selection_follows_its_container() {
    let mut m = model();
    m.update(Key::Down);
    let id = m.focus().unwrap().id.clone();
    let mut f = frame();
    f.containers.reverse();
    m.show(f.clone());
    assert_eq!(m.focus().unwrap().id, id);
    f.containers.retain(|c| c.id != id);
    m.show(f);
    assert_eq!(m.row(), 0, "gone: the first");
    assert!(!m.trends.contains_key(&id), "nothing is kept of what is gone");
    let one = Model::new(SortBy::Memory, Some("tools".into()), None);
    let mut one = one;
    one.show(frame());
    assert_eq!(one.rows().len(), 1);
}

#[test]
fn a_replay_goes_where_it_is_told() {
    let mut m = model();
    m.replay = Some(Replay { at: 5, len: 10, death: Some(8), speed: 4 });
    let mut to = |k| m.update(k);
    assert_eq!(to(Key::Left), UiAction::Show(4));
    assert_eq!(to(Key::Right), UiAction::Show(6));
    assert_eq!(
        (to(Key::Home), to(Key::End), to(Key::Char('d'))),
        (UiAction::Show(0), UiAction::Show(9), UiAction::Show(8))
    );
    assert!(m.paused);
    for _ in 0..9 {
        m.update(Key::Char('+'));
    }
    assert_eq!(m.replay.unwrap().speed, 64);
    m.replay = Some(Replay { at: 8, len: 10, death: Some(8), speed: 4 });
    let lines = drawn(&m, 80, 24);
    assert!(lines[0].contains("replay 9/10") && lines[0].contains("✝ died"), "{}", lines[0]);
    assert!(lines[1].contains('●') && lines[1].starts_with('━'), "{}", lines[1]);
}
