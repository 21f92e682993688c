//! What every store must do, asked of each: SQLite, and Postgres where it is installed.

use std::collections::BTreeMap;
use std::path::Path;

use dualplane_incidents::{Cursor, Filter, Fleet, Incident, Time};
use dualplane_server::ended;
use dualplane_server::store::{
    self, BundleRow, Death, Page, Put, Realm, Scope, Span, Store, postgres::Postgres, sqlite::Sqlite,
};
use futures_util::future::BoxFuture;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};

use crate::deaths::{death, kept, now, report, some};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap()
}

/// Occurrences are the store's: how often each cause came.
fn counted(all: &[Incident]) -> Vec<Incident> {
    let mut times: BTreeMap<&str, u64> = BTreeMap::new();
    for i in all {
        *times.entry(&i.cause_key).or_default() += 1;
    }
    let with = |i: &Incident| Incident { occurrences: times[i.cause_key.as_str()], ..i.clone() };
    all.iter().map(with).collect()
}

async fn whole(store: &dyn Store, filter: &Filter, scope: &Scope, limit: usize) -> Vec<Incident> {
    let (mut out, mut after) = (Vec::new(), None);
    loop {
        let page = Page { filter: filter.clone(), scope: scope.clone(), after, limit };
        let got = store::list(store, &page).await.unwrap();
        after = got.last().map(Cursor::behind);
        out.extend(got);
        if after.is_none() {
            return out;
        }
    }
}

const QUERIES: &[&str] = &[
    "",
    "each=true",
    "namespace=a",
    "namespace=a&namespace=b&class=xid_hardware",
    "plane=gpu",
    "node=a",
    "node=%C3%BC%25_%27%22",
    "gpu=GPU-1",
    "gpu_name=H100&xid=79",
    "driver=570.3",
    "xid=31&xid=94",
    "since=2026-11-24T03:00:00Z",
    "until=2026-11-24T03:00:00Z&each=true",
    "q=vram",
    "q=100%20%25%20_X_",
    "q=%5C%20%C3%A4%C3%B6",
    "q=%00",
    "node=%00&node=a",
    "cause=k/a/b//xid_hardware",
    "loop=k/a/a/",
    "owner=b",
    "engine=vllm&phase=traffic",
    "model=none",
    "image=none",
    "q=ram",
    "q=ra",
    "q=kernel%20killed&namespace=a&each=true",
    "q=kernel&gpu=GPU-1&gpu=GPU-2",
    "q=ran%20out&since=2026-11-24T03:00:00Z&until=2026-11-24T20:00:00Z",
    "q=%22",
    "q=k%22%20OR%20%22x",
    "q=%C3%BC%25_%27%22",
    "gpu=GPU-0&gpu=GPU-1&gpu=GPU-2",
    "gpu=GPU-1&gpu=GPU-2&namespace=a&namespace=b&class=xid_hardware&class=host_oom_killed",
    "driver=570.3&driver=570.4&gpu_name=H100",
    "gpu_name=H100&node=a&each=true",
    "xid=79&namespace=a",
    "xid=79&xid=31&namespace=a&class=xid_hardware",
    "namespace=a&class=host_oom_killed&each=true",
    "namespace=a&class=host_oom_killed&each=true&since=2026-11-24T03:00:00Z&until=2026-11-24T20:00:00Z",
    "node=a&owner=b&namespace=c&each=true",
    "q=kernel%20killed&namespace=a&node=b&driver=570.3",
    "gpu_name=H100&plane=host&confidence=high&phase=traffic",
    "q=%EE%80%80%EE%80%80%EE%80%80&namespace=a",
    "namespace=a&namespace=b&namespace=c&owner=a&owner=b&owner=c&class=xid_hardware&class=host_oom_killed&class=cuda_oom_runtime&node=a&node=b&node=c&gpu=GPU-1&gpu=GPU-2",
];

/// What is put can be listed as the reference does, whatever the batches.
async fn lists(
    store: &dyn Store,
    batches: &[Vec<Death>],
    query: &str,
    limit: usize,
) -> Result<(), TestCaseError> {
    let mut first = std::collections::BTreeMap::new();
    for batch in batches {
        let answers = store.put(batch.clone()).await.unwrap();
        prop_assert_eq!(answers.len(), batch.len());
        for (d, put) in batch.iter().zip(answers) {
            let wanted = match first.get(&d.incident.id) {
                None => Put::Kept,
                Some(digest) if *digest == d.digest => Put::Known,
                Some(_) => Put::Taken,
            };
            prop_assert_eq!(put, wanted);
            first.entry(d.incident.id.clone()).or_insert_with(|| d.digest.clone());
        }
    }
    let all = kept(&batches.concat());
    let filter = Filter::parse(query).unwrap();
    let told = counted(&all);
    let wanted: Vec<Incident> = filter.select(&told).into_iter().cloned().collect();
    prop_assert_eq!(&whole(store, &filter, &Scope::All, limit).await, &wanted);
    let of_a = Scope::Some(vec![Realm { cluster: None, namespace: Some("a".into()) }]);
    let in_a: Vec<Incident> = wanted.iter().filter(|i| i.namespace == "a").cloned().collect();
    prop_assert_eq!(&whole(store, &filter, &of_a, limit).await, &in_a);
    // Namespaces that overlap tell each death once.
    let realm =
        |c: Option<&str>, n: Option<&str>| Realm { cluster: c.map(Into::into), namespace: n.map(Into::into) };
    let over =
        Scope::Some(vec![realm(None, Some("a")), realm(Some("k"), Some("a")), realm(Some("k"), Some("b"))]);
    let in_both: Vec<Incident> =
        wanted.iter().filter(|i| over.allows(&i.cluster, &i.namespace)).cloned().collect();
    prop_assert_eq!(&whole(store, &filter, &over, limit).await, &in_both);
    for i in &told {
        prop_assert_eq!(store::get(store, &i.id).await.unwrap(), Some(i.clone()));
    }
    let nowhere = Page { filter, scope: Scope::Some(vec![]), after: None, limit };
    prop_assert_eq!(store::list(store, &nowhere).await.unwrap(), vec![]);
    let fleet = store::fleet(store, &Span { since: None, scope: Scope::All }).await.unwrap();
    prop_assert_eq!(fleet, Fleet::of(&all));
    let in_a: Vec<Incident> = all.into_iter().filter(|i| i.namespace == "a").collect();
    let fleet = store::fleet(store, &Span { since: None, scope: of_a }).await.unwrap();
    prop_assert_eq!(fleet, Fleet::of(&in_a));
    Ok(())
}

/// What is older goes, with all that was counted of it, and what stays is as if the rest had never been.
async fn forgets(store: &dyn Store, batch: Vec<Death>) -> Result<(), TestCaseError> {
    store.put(batch.clone()).await.unwrap();
    let before = Time::parse("2026-11-24T03:00:00Z").unwrap();
    // All was received later: nothing is removed.
    prop_assert!(store.forget(before, 1000).await.unwrap().is_empty());
    let mut old = batch;
    for d in &mut old {
        d.incident.id = format!("old-{}", d.incident.id);
        d.incident.received_at = d.incident.died_at;
    }
    let gone: std::collections::BTreeSet<String> =
        kept(&old).iter().filter(|i| i.died_at < before).map(|i| i.id.clone()).collect();
    let new = store::fleet(store, &Span { since: None, scope: Scope::All }).await.unwrap();
    store.put(old.clone()).await.unwrap();
    let mut removed = std::collections::BTreeSet::new();
    loop {
        let some = store.forget(before, 3).await.unwrap();
        let done = some.len() < 3;
        removed.extend(some);
        if done {
            break;
        }
    }
    prop_assert_eq!(&removed, &gone);
    let left = whole(store, &Filter { each: true, ..Filter::default() }, &Scope::All, 100).await;
    prop_assert!(left.iter().all(|i| !gone.contains(&i.id)));
    let fleet = store::fleet(store, &Span { since: None, scope: Scope::All }).await.unwrap();
    let counts = Fleet::of(&left);
    prop_assert_eq!((&fleet.by, &fleet.days, fleet.incidents), (&counts.by, &counts.days, counts.incidents));
    prop_assert_eq!(fleet.causes, counts.causes);
    prop_assert!(fleet.incidents >= new.incidents);
    // Each cause that is left has a latest death that is left.
    let latest = whole(store, &Filter::default(), &Scope::All, 100).await;
    prop_assert_eq!(latest.len() as u64, fleet.causes);
    Ok(())
}

fn suite(cases: u32, mut open: impl FnMut() -> BoxFuture<'static, Box<dyn Store>>) {
    let runtime = runtime();
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let batches = prop::collection::vec(prop::collection::vec(some(), 0..12), 0..5);
    let wanted = (batches, prop::sample::select(QUERIES.to_vec()), 1usize..9);
    let open = std::cell::RefCell::new(&mut open);
    runner
        .run(&wanted, |(batches, query, limit)| {
            let store = runtime.block_on((open.borrow_mut())());
            runtime.block_on(lists(&*store, &batches, query, limit))
        })
        .unwrap();
    runner
        .run(&prop::collection::vec(some(), 0..40), |batch| {
            let store = runtime.block_on((open.borrow_mut())());
            runtime.block_on(forgets(&*store, batch))
        })
        .unwrap();
    let store = (open.borrow_mut())();
    runtime.block_on(async {
        one_by_one(&*store.await).await;
    });
}

async fn one_by_one(store: &dyn Store) {
    assert_eq!(store::get(store, "a").await.unwrap(), None);
    assert_eq!(store::report(store, "a").await.unwrap(), None);
    let d = death("a", &report("xid_hardware", "s"), &dualplane_incidents::Where::default());
    assert_eq!(store.put(vec![d.clone(), d.clone()]).await.unwrap(), [Put::Kept, Put::Known]);
    assert_eq!(store::report(store, "a").await.unwrap(), Some(d.report.clone()));
    let by = |sender: &str, digest: &str| Death { sender: sender.into(), digest: digest.into(), ..d.clone() };
    let all = vec![by("me", "other"), by("you", &d.digest), by("you", "other")];
    assert_eq!(store.put(all).await.unwrap(), [Put::Taken, Put::Known, Put::Foreign]);
    assert_eq!(store::sender(store, "a").await.unwrap().as_deref(), Some("me"));
    assert_eq!(store::bundle(store, "a").await.unwrap(), None);
    let row = BundleRow { size: 7, sha256: "00".into() };
    store.put_bundle("a".into(), row.clone()).await.unwrap();
    store.put_bundle("a".into(), row.clone()).await.unwrap();
    assert_eq!(store::bundle(store, "a").await.unwrap(), Some(row));
    let later = Time::from_ms(now().ms() + 1);
    assert_eq!(store::latest(store, later).await.unwrap(), Some(now()));
    assert_eq!(store::latest(store, now()).await.unwrap(), None, "of those before");
    let from = store::Arrival { at: now(), id: String::new() };
    assert_eq!(store::arrivals(store, &from, 10).await.unwrap()[0].id, "a");
}

#[test]
fn sqlite_does_what_a_store_must() {
    let home = tempfile::tempdir().unwrap();
    let mut n = 0;
    suite(24, || {
        n += 1;
        let store = Sqlite::open(&home.path().join(format!("{n}.db"))).unwrap();
        Box::pin(async move { Box::new(store) as Box<dyn Store> })
    });
}

#[test]
fn postgres_does_what_a_store_must() {
    let Some(server) = crate::postgres::Postgres::start() else { return };
    let mut n = 0;
    suite(8, || {
        n += 1;
        let url = server.url(&format!("s{n}"));
        Box::pin(async move { Box::new(Postgres::connect(&url).await.unwrap()) as Box<dyn Store> })
    });
}

/// Two programs on one database: what one has counted is not what it tells when the other has written.
async fn two_see_the_same(one: &dyn Store, other: &dyn Store) {
    let all = Span { since: None, scope: Scope::All };
    let place =
        dualplane_incidents::Where { namespace: Some("a".into()), owner: Some("w".into()), ..<_>::default() };
    for n in 0..6 {
        let (writes, reads) = if n % 2 == 0 { (one, other) } else { (other, one) };
        let d = death(&format!("t{n}"), &report("host_oom_killed", "s"), &place);
        assert_eq!(writes.put(vec![d]).await.unwrap(), [Put::Kept]);
        for store in [reads, writes] {
            let fleet = store::fleet(store, &all).await.unwrap();
            assert_eq!((fleet.incidents, fleet.by["owner"][0].count), (n + 1, n + 1));
        }
    }
    let gone = one.forget(Time::from_ms(now().ms() + 1), 100).await.unwrap();
    assert_eq!(gone.len(), 6);
    assert_eq!(store::fleet(other, &all).await.unwrap().incidents, 0);
}

/// A session that ended at one program has ended at the other, until it would be over by itself.
async fn a_session_ends_at_both(one: &dyn Store, other: &dyn Store) {
    let session = |mark: &str, over| ended::Session { mark: mark.into(), over };
    let (a, b) = (session("aa", 100), session("bb", 200));
    ended::end(one, &a).await.unwrap();
    ended::end(one, &a).await.unwrap();
    ended::end(other, &b).await.unwrap();
    for store in [one, other] {
        assert!(ended::is_ended(store, &a).await.unwrap() && ended::is_ended(store, &b).await.unwrap());
        assert!(!ended::is_ended(store, &session("cc", 100)).await.unwrap());
    }
    assert_eq!((ended::forget(one, 100).await.unwrap(), ended::forget(other, 101).await.unwrap()), (0, 1));
    assert!(!ended::is_ended(one, &a).await.unwrap() && ended::is_ended(one, &b).await.unwrap());
}

#[test]
fn two_programs_on_one_database_tell_the_same() {
    let home = tempfile::tempdir().unwrap();
    let open = || Sqlite::open(&home.path().join("two.db")).unwrap();
    runtime().block_on(two_see_the_same(&open(), &open()));
    runtime().block_on(a_session_ends_at_both(&open(), &open()));
    let Some(server) = crate::postgres::Postgres::start() else { return };
    runtime().block_on(async {
        let url = server.url("two");
        let open = async || Postgres::connect(&url).await.unwrap();
        two_see_the_same(&open().await, &open().await).await;
        a_session_ends_at_both(&open().await, &open().await).await;
    });
}

/// A database as the first version left it answers like a new one.
#[test]
fn an_older_database_is_carried_over() {
    let home = tempfile::tempdir().unwrap();
    let (new, old) = (home.path().join("new.db"), home.path().join("old.db"));
    let mut runner = TestRunner::deterministic();
    let deaths: Vec<Death> = (0..40).map(|_| some().new_tree(&mut runner).unwrap().current()).collect();
    let runtime = runtime();
    let store = Sqlite::open(&new).unwrap();
    runtime.block_on(store.put(deaths)).unwrap();
    let c = rusqlite::Connection::open(&old).unwrap();
    let first = include_str!("../../src/migrations/0001_incidents.sql");
    c.execute_batch(&first.replace("<key>", "TEXT").replace("<text>", "TEXT").replace("<bytes>", "BLOB"))
        .unwrap();
    c.execute("ATTACH ?1 AS new", [new.to_str().unwrap()]).unwrap();
    for table in ["incidents", "reports", "several", "causes", "counts", "gpus", "gpu_xids"] {
        let mut of = c.prepare("SELECT name FROM pragma_table_info(?1, 'main')").unwrap();
        let columns: Vec<String> = of.query_map([table], |r| r.get(0)).unwrap().map(Result::unwrap).collect();
        let columns = columns.join(", ");
        let sql = format!("INSERT INTO main.{table} ({columns}) SELECT {columns} FROM new.{table}");
        assert!(c.execute(&sql, []).unwrap() > 0, "{table}");
    }
    c.pragma_update(Some("main"), "user_version", 1).unwrap();
    drop(c);
    let carried = Sqlite::open(&old).unwrap();
    runtime.block_on(async {
        for query in QUERIES {
            let filter = Filter::parse(query).unwrap();
            let wanted = whole(&store, &filter, &Scope::All, 7).await;
            assert_eq!(whole(&carried, &filter, &Scope::All, 7).await, wanted, "{query}");
        }
        let all = Span { since: None, scope: Scope::All };
        assert_eq!(store::fleet(&carried, &all).await.unwrap(), store::fleet(&store, &all).await.unwrap());
        // What is kept and removed from now on, too.
        let later = death("later", &report("xid_hardware", "a later word"), &<_>::default());
        assert_eq!(carried.put(vec![later]).await.unwrap(), [Put::Kept]);
        let found = whole(&carried, &Filter::parse("q=later%20word").unwrap(), &Scope::All, 7).await;
        assert_eq!(found.len(), 1);
        while !carried.forget(Time::from_ms(now().ms() + 1), 7).await.unwrap().is_empty() {}
        assert_eq!(whole(&carried, &Filter::parse("q=ram").unwrap(), &Scope::All, 7).await, []);
        assert_eq!(store::fleet(&carried, &all).await.unwrap().incidents, 0);
    });
}

#[test]
fn a_database_of_a_later_version_is_refused_and_a_file_of_another_kind_too() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("later.db");
    drop(Sqlite::open(&path).unwrap());
    drop(Sqlite::open(&path).unwrap());
    set_version(&path);
    let e = Sqlite::open(&path).unwrap_err().to_string();
    assert!(e.contains("update dualplane-server"), "{e}");
    std::fs::write(home.path().join("no.db"), "this is no database, by far not one").unwrap();
    assert!(Sqlite::open(&home.path().join("no.db")).is_err());
}

fn set_version(path: &Path) {
    let c = rusqlite::Connection::open(path).unwrap();
    c.pragma_update(None, "user_version", 99).unwrap();
}
