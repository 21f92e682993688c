//! What goes first when the budget is used up, and what a crash between two writes leaves.

use std::fs;

use super::*;

fn summary(n: u32, kind: Kind, first: bool) -> Summary {
    Summary {
        schema: SCHEMA.into(),
        id: id_of(&format!("2026-11-21T10:00:{n:02}.000Z"), &["serving", &format!("llm-{n}"), "vllm"]),
        kind,
        state: State::Begun,
        died_at: String::new(),
        node: "n".into(),
        namespace: "serving".into(),
        pod: format!("llm-{n}"),
        uid: format!("u{n}"),
        api_uid: None,
        container: "vllm".into(),
        container_id: String::new(),
        restart: Some(n),
        first,
        class: None,
        plane: None,
        trigger: None,
        kernel_record: None,
        from_exec: false,
        exit_code: None,
        durable_ms: None,
        bytes: 0,
    }
}

fn put(store: &mut Store, s: Summary, size: usize) -> Result<(), StoreError> {
    let id = s.id.clone();
    store.begin(s)?;
    store.keep(&id, &vec![7; size])?;
    store.change(&id, |s| s.state = State::Judged)
}

#[test]
fn ids_are_names_of_files() {
    let id = id_of("2026-11-21T21:38:12.345Z", &["serving", "../../etc", "", "c\u{1b}[31m", "3"]);
    assert_eq!(id, "20261121T213812.345Z-serving-.._.._etc-c__31m-3");
    assert!(is_id(&id));
    assert!(id_of("2026", &["x".repeat(500).as_str(), "y".repeat(500).as_str()]).len() <= 180);
    for bad in ["", "../x", "a", "1/2", "1\n", "20\u{e9}"] {
        assert!(!is_id(bad), "{bad:?}");
    }
}

#[test]
fn ends_go_first_then_later_deaths_and_first_deaths_last() {
    let d = tempfile::tempdir().unwrap();
    let mut s = Store::open(d.path(), 4000).unwrap();
    put(&mut s, summary(1, Kind::Death, true), 1000).unwrap();
    put(&mut s, summary(2, Kind::Death, false), 1000).unwrap();
    put(&mut s, summary(3, Kind::End, true), 1000).unwrap();
    put(&mut s, summary(4, Kind::Death, true), 1000).unwrap();
    let held = |s: &Store| s.all().filter(|x| x.bytes > 0).map(|x| x.restart.unwrap()).collect::<Vec<_>>();
    put(&mut s, summary(5, Kind::Death, true), 1000).unwrap();
    assert_eq!(held(&s), [1, 2, 4, 5]);
    put(&mut s, summary(6, Kind::Death, true), 1000).unwrap();
    assert_eq!(held(&s), [1, 4, 5, 6]);
    put(&mut s, summary(7, Kind::Death, true), 1000).unwrap();
    assert_eq!(held(&s), [4, 5, 6, 7], "of equals the oldest");
    assert_eq!((s.counts().dropped, s.counts().dropped_firsts, s.counts().bytes), (3, 1, 4000));
    let refused = put(&mut s, summary(8, Kind::Death, false), 1000).unwrap_err();
    assert!(matches!(refused, StoreError::Budget(4000)), "a later death drops no first one");
    assert_eq!(held(&s), [4, 5, 6, 7]);
    let again = Store::open(d.path(), 4000).unwrap();
    assert_eq!(held(&again), [4, 5, 6, 7]);
    assert_eq!(again.all().count(), 7, "summaries of what had to go stay");
    assert_eq!(again.deaths(&("u1".into(), "vllm".into())), 1);
}

#[test]
fn a_crash_between_two_writes() {
    let d = tempfile::tempdir().unwrap();
    let mut s = Store::open(d.path(), 1 << 20).unwrap();
    let (a, b, c) =
        (summary(1, Kind::Death, true), summary(2, Kind::Death, true), summary(3, Kind::Death, true));
    s.begin(a.clone()).unwrap();
    s.begin(b.clone()).unwrap();
    s.keep(&b.id, b"bundle").unwrap();
    fs::write(d.path().join(format!("{}.tar.zst.new", c.id)), "half").unwrap();
    fs::write(d.path().join(format!("{}.tar.zst", c.id)), "of nobody").unwrap();
    fs::write(d.path().join("20260101T0-broken.json"), "{\"schema\": 1").unwrap();
    fs::write(d.path().join("20260101T0-other.json"), serde_json::to_vec(&c).unwrap()).unwrap();
    let s = Store::open(d.path(), 1 << 20).unwrap();
    assert!(s.get(&a.id).is_none(), "never written: its death is noticed anew");
    assert_eq!(s.get(&b.id).map(|x| (x.state, x.bytes)), Some((State::Kept, 6)));
    let told = super::list(d.path()).unwrap().0;
    assert_eq!(
        (told.len(), told[0].state, told[0].bytes),
        (1, State::Kept, 6),
        "who reads the folder finds it"
    );
    assert_eq!(s.counts().unreadable, 2);
    let left: Vec<_> = fs::read_dir(d.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!left.iter().any(|n| n.to_str().unwrap().contains("llm-3")), "{left:?}");
}

#[test]
fn what_was_none_is_removed() {
    let d = tempfile::tempdir().unwrap();
    let mut s = Store::open(d.path(), 1 << 20).unwrap();
    let a = summary(1, Kind::End, true);
    put(&mut s, a.clone(), 10).unwrap();
    assert_eq!(s.deaths(&a.loop_key()), 1);
    s.remove(&a.id);
    assert_eq!(
        (s.deaths(&a.loop_key()), s.counts().bytes, fs::read_dir(d.path()).unwrap().count()),
        (0, 0, 0)
    );
}

#[test]
fn a_folder_that_somebody_removed_is_made_again_and_says_what_is_lost() {
    let d = tempfile::tempdir().unwrap();
    let dir = d.path().join("state/incidents");
    let mut s = Store::open(&dir, 1 << 20).unwrap();
    let (a, b) = (summary(1, Kind::Death, true), summary(2, Kind::Death, true));
    put(&mut s, a.clone(), 10).unwrap();
    fs::remove_dir_all(d.path().join("state")).unwrap();
    assert!(!s.is_there());
    assert!(matches!(put(&mut s, b.clone(), 10), Err(StoreError::Io { .. })));
    assert_eq!(s.remake().unwrap(), 1);
    assert_eq!((s.counts().bundles, s.counts().bytes), (0, 0));
    put(&mut s, b.clone(), 10).unwrap();
    let told: Vec<_> = super::list(&dir).unwrap().0.into_iter().map(|x| (x.id, x.state)).collect();
    assert_eq!(told, [(a.id, State::Dropped), (b.id, State::Judged)], "that it happened is still known");
}
