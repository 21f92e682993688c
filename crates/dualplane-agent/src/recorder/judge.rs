//! Judges kept bundles and settles whether an end was a death, in a thread of its own.
//!
//! The bundle is on the disk before anything here happens. The API server, where there is one, tells the exit code and the
//! pod as it was meant; it learns of a death a second or so after the node.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use dualplane_core::evidence::RawFile;
use dualplane_kube::bundle::{artifact, pack, unpack};
use dualplane_node::clock::Moment;
use serde_json::Value;

use super::bundle::json_file;
use super::container_ref::ContainerRef;
use super::decide::{Decision, EndFacts, Exit, decide};
use super::keeper::{KeeperEvent, Shared};
use super::later::{Later, MAX_LATER};
use super::outside::{Cluster, ClusterTrouble, Judge, Judged};
use crate::health::{Health, Level, LogLine, Part, line_of};
use crate::incident::{Kind, State, Summary};

/// The kubelet writes a pod's status a second after a death; under load some.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// After so long the API server's answer is not waited for any more where the kernel told of a kill.
const ASK_FOR: Duration = Duration::from_secs(10);
/// Else nobody but the kubelet knows how it ended, and on a node that is short of anything it writes late.
const ASK_LONGER: Duration = Duration::from_secs(40);
/// Between two looks at what nobody has settled.
const TICK: Duration = Duration::from_secs(1);

/// Between two looks at whether the API server can be asked, while nothing is asked; while it cannot, more often.
const CHECK: Duration = Duration::from_secs(300);
const CHECK_AGAIN: Duration = Duration::from_secs(15);
/// A verdict that failed is tried once more before its end is settled: the node was out of memory, or out of time.
const JUDGE_AGAIN: Duration = Duration::from_secs(5);

/// How much less than others the judging gets of a processor that is not enough for all.
const NICE: i32 = 10;

/// A bundle to judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Task {
    pub(super) id: String,
    pub(super) oom: bool,
    /// A kill in it was told before, and it lived on.
    pub(super) lived_on: bool,
    pub(super) who: ContainerRef,
    pub(super) noticed: Moment,
    /// What an earlier run found: only what it was is still to be settled.
    pub(super) judged: Option<Judged>,
}

/// What the log folders say later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum InstanceEvent {
    /// A later instance began.
    Restarted { uid: String, container: String, restart: u32 },
    /// The pod's logs are gone.
    Removed { uid: String },
}

/// What the thread works with.
pub(super) struct JudgeWorker {
    pub(super) shared: Arc<Shared>,
    pub(super) judge: Box<dyn Judge>,
    pub(super) cluster: Option<Box<dyn Cluster>>,
    pub(super) mask: Box<dyn Fn(&mut Value) + Send>,
    pub(super) events: Sender<KeeperEvent>,
    pub(super) health: Arc<Health>,
    /// When the API server is looked at next.
    pub(super) check: Moment,
    /// It did not answer in this turn: it is not asked for the others.
    pub(super) no_answer: bool,
    /// Without a verdict so far.
    pub(super) later: Vec<Later>,
}

struct PendingVerdict {
    task: Task,
    known: EndFacts,
    judged: Option<Judged>,
    /// The pod's UID at the API server, where the node knows another.
    api_uid: Option<String>,
    /// The API server is asked no more.
    asked: bool,
    /// Judging failed once; when it is tried again.
    failed: Option<Moment>,
    /// Its bundle is gone.
    dropped: bool,
    next: Moment,
}

impl JudgeWorker {
    pub(super) fn start(
        self,
        tasks: Receiver<Task>,
        news: Receiver<InstanceEvent>,
    ) -> io::Result<JoinHandle<()>> {
        std::thread::Builder::new().name("judge".into()).spawn(move || self.run(&tasks, &news))
    }

    fn run(mut self, tasks: &Receiver<Task>, news: &Receiver<InstanceEvent>) {
        // Of this thread and the processes that it starts: a verdict can wait, the samples and the model server cannot.
        let _ = rustix::process::nice(NICE);
        let mut open: Vec<PendingVerdict> = Vec::new();
        // Where a bundle waits to be judged, news do not wait longer than that takes.
        let mut busy = false;
        loop {
            self.check_cluster();
            match tasks.recv_timeout(if busy { Duration::ZERO } else { TICK }) {
                Ok(task) => open.push(self.begin(task)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    // What is begun is judged by what is known now; the rest is settled by the next run's reader.
                    for mut o in open {
                        (o.asked, o.failed) = (true, o.failed.map(|_| Moment::default()));
                        self.try_judge(&mut o);
                        self.settle(&mut o);
                    }
                    return;
                }
            }
            open.extend(tasks.try_iter().take(256).map(|t| self.begin(t)).collect::<Vec<_>>());
            for n in news.try_iter() {
                open.iter_mut().for_each(|o| o.hear(&n));
            }
            busy = self.turn(&mut open);
            if !busy {
                self.judge_later();
            }
        }
    }

    /// Asks for all, then judges for a moment: a pod's status keeps an end until the next one, and a verdict takes a second on
    /// a busy node. `true` where others wait to be judged.
    fn turn(&mut self, open: &mut Vec<PendingVerdict>) -> bool {
        self.no_answer = false;
        open.iter_mut().for_each(|o| self.ask_in_time(o));
        let began = Moment::now();
        for o in open.iter_mut().filter(|o| o.is_ready(began)) {
            self.try_judge(o);
            if Moment::now().since(began) >= TICK {
                break;
            }
        }
        open.retain_mut(|o| !self.settle(o));
        open.iter().any(|o| o.is_ready(began))
    }

    fn begin(&self, task: Task) -> PendingVerdict {
        let judged = task.judged.clone();
        let judged_memory = judged.as_ref().is_some_and(Judged::is_memory);
        let known = EndFacts { oom: task.oom, lived_on: task.lived_on, judged_memory, ..EndFacts::default() };
        let now = Moment::now();
        PendingVerdict {
            known,
            judged,
            api_uid: None,
            asked: self.cluster.is_none(),
            failed: None,
            dropped: false,
            next: now,
            task,
        }
    }

    fn ask_in_time(&mut self, o: &mut PendingVerdict) {
        let now = Moment::now();
        o.known.age = now.since(o.task.noticed);
        if o.asked || now < o.next {
            return;
        }
        o.next = now.plus(ASK_AGAIN);
        let patience = if o.known.oom { ASK_FOR } else { ASK_LONGER };
        o.asked = !self.no_answer && self.ask(o) || o.known.age >= patience;
        if o.known.exit.is_some() {
            // More is known now than when an earlier run judged it.
            o.judged = None;
        }
    }

    /// A kill that the death of its container told of, or a bundle that had to go, leaves nothing to judge.
    fn try_judge(&mut self, o: &mut PendingVerdict) {
        o.dropped = self.shared.store().get(&o.task.id).is_none();
        if o.judged.is_none() && !o.dropped {
            self.judge(o);
        }
    }

    /// `true` where it is settled.
    fn settle(&mut self, o: &mut PendingVerdict) -> bool {
        let settled = o.dropped || self.decided(o);
        self.shared.count(|c| c.settled += u64::from(settled));
        settled
    }

    fn decided(&mut self, o: &mut PendingVerdict) -> bool {
        if o.judged.is_none() || !o.asked {
            return false;
        }
        match decide(&o.known) {
            Decision::Wait => false,
            Decision::Clean => {
                let key = o.task.who.loop_key();
                self.shared.store().remove(&o.task.id);
                let _ = self.events.send(KeeperEvent::NotADeath(key));
                true
            }
            Decision::Unclear => true,
            Decision::Death => {
                self.shared.store().remove_kills_of(&o.task.id);
                let _ = self.shared.store().change(&o.task.id, |s| {
                    if s.kind == Kind::End {
                        s.kind = Kind::Death;
                    }
                });
                if let Some(s) = self.shared.store().get(&o.task.id) {
                    self.health.say(said(s));
                }
                true
            }
        }
    }

    /// Looks whether the API server can be asked, where it is time to.
    fn check_cluster(&mut self) {
        let now = Moment::now();
        let Some(cluster) = self.cluster.as_mut().filter(|_| now >= self.check) else { return };
        let (access, rights) = match cluster.check() {
            Ok(()) => (Ok(()), Ok(())),
            Err(ClusterTrouble::Rights(why)) => (Ok(()), Err(why)),
            Err(ClusterTrouble::Access(why)) => (Err(why), Ok(())),
        };
        let well = access.is_ok() && rights.is_ok();
        self.check = Moment::now().plus(if well { CHECK } else { CHECK_AGAIN });
        // A server that cannot be asked says nothing of rights.
        if access.is_ok() {
            self.health.report(&Part::ApiRights, rights);
        }
        self.health.report(&Part::ApiServer, access);
    }

    /// Asks the API server. `true` where it told all that it will.
    fn ask(&mut self, o: &mut PendingVerdict) -> bool {
        let Some(cluster) = &mut self.cluster else { return true };
        if o.task.who.pod.is_empty() {
            return true;
        }
        let mut pod = match cluster.pod(&o.task.who) {
            Ok(Some(pod)) => pod,
            // Gone, or of another name's owner: nothing more will come.
            Ok(None) => return true,
            Err(_) => {
                self.no_answer = true;
                self.check = Moment::default();
                self.check_cluster();
                return false;
            }
        };
        let Some(exit) = exit_of(&pod, &o.task.who) else { return false };
        o.known.exit = Some(exit);
        let uid = pod.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or(&o.task.who.uid).to_owned();
        let events = cluster.events(&o.task.who.namespace, &uid).ok();
        o.api_uid = (uid != o.task.who.uid).then_some(uid);
        (self.mask)(&mut pod);
        let mut added = vec![json_file("pod.json", &pod)];
        if let Some(mut events) = events {
            (self.mask)(&mut events);
            added.push(json_file("events.json", &events));
        }
        self.enrich(&o.task.id, added);
        true
    }

    /// Puts files into a bundle, in place of those of the same name. The folder is free meanwhile: this thread alone
    /// changes a bundle once it is kept.
    fn enrich(&self, id: &str, added: Vec<RawFile>) {
        let path = self.shared.store().bundle(id);
        let Some(mut files) = std::fs::read(path).ok().and_then(|b| unpack(&b).ok()) else { return };
        let prefix = format!("{id}/");
        for f in &mut files {
            f.name = f.name.strip_prefix(&prefix).unwrap_or(&f.name).to_owned();
        }
        files.retain(|f| !added.iter().any(|a| a.name == f.name));
        files.extend(added);
        name_models(&mut files);
        if let Ok(bytes) = pack([(id.to_owned(), files.as_slice())], 0) {
            // Where there is no room for more, or it had to go, the bundle stays as it was.
            let mut store = self.shared.store();
            if store.get(id).is_some_and(|s| s.bytes > 0) {
                let _ = store.keep(id, &bytes);
            }
        }
    }

    fn judge(&mut self, o: &mut PendingVerdict) {
        let path = self.shared.store().bundle(&o.task.id);
        let judged = match self.judge.judge(&path) {
            Ok(j) => {
                self.health.report(&Part::Judge, Ok(()));
                j
            }
            Err(why) => {
                let id = &o.task.id;
                self.health.report(&Part::Judge, Err(format!("{id}: {why}")));
                if o.failed.is_none() {
                    o.failed = Some(Moment::now().plus(JUDGE_AGAIN));
                    return;
                }
                self.put_off(Later::of(id));
                Judged::default()
            }
        };
        o.known.judged_memory = judged.is_memory();
        let exit = o.known.exit.as_ref().map(|e| e.code);
        let _ = self.shared.store().change(&o.task.id, |s| {
            s.exit_code = exit;
            s.api_uid.clone_from(&o.api_uid);
            write(s, &judged);
        });
        o.judged = Some(judged);
    }

    /// Its end is settled without a verdict, which may still come.
    fn put_off(&mut self, later: Option<Later>) {
        match later.filter(|_| self.later.len() < MAX_LATER) {
            Some(later) => self.later.push(later),
            None => self.shared.count(|c| c.unjudged += 1),
        }
    }

    /// Judges one that was put off, where it is time to.
    fn judge_later(&mut self) {
        let now = Moment::now();
        let Some(at) = self.later.iter().position(|l| l.is_due(now)) else { return };
        let later = self.later.swap_remove(at);
        if self.shared.store().get(&later.id).is_none() {
            return;
        }
        let path = self.shared.store().bundle(&later.id);
        match self.judge.judge(&path) {
            Ok(judged) => {
                self.health.report(&Part::Judge, Ok(()));
                let _ = self.shared.store().change(&later.id, |s| write(s, &judged));
                if let Some(s) = self.shared.store().get(&later.id) {
                    self.health.say(said(s));
                }
            }
            Err(why) => {
                self.health.report(&Part::Judge, Err(format!("{}: {why}", later.id)));
                self.put_off(later.again());
            }
        }
    }
}

fn write(s: &mut Summary, judged: &Judged) {
    if !judged.class.is_empty() {
        s.state = State::Judged;
        s.class = Some(judged.class.clone());
        s.plane = Some(judged.plane.clone());
        s.trigger.clone_from(&judged.trigger);
    }
}

/// An incident, in the log.
fn said(s: &Summary) -> LogLine {
    let kind = if s.kind == Kind::Kill { "kill" } else { "death" };
    let who = [&s.namespace, &s.pod, &s.container].map(String::as_str);
    let who = who.into_iter().filter(|w| !w.is_empty()).collect::<Vec<_>>().join("/");
    line_of(Level::Info, "incident")
        .with("id", &s.id)
        .with("kind", kind)
        .with("container", &who)
        .with_some("restart", s.restart.map(|r| r.to_string()).as_deref())
        .with("first", if s.first { "true" } else { "false" })
        .with_some("exit_code", s.exit_code.map(|c| c.to_string()).as_deref())
        .with_some("class", s.class.as_deref())
        .with_some("plane", s.plane.as_deref())
        .with_some("trigger", s.trigger.as_deref())
}

impl PendingVerdict {
    /// All that will be told is told, and there is no verdict.
    fn is_ready(&self, now: Moment) -> bool {
        self.judged.is_none() && self.asked && self.failed.is_none_or(|again| now >= again)
    }

    fn hear(&mut self, news: &InstanceEvent) {
        let who = &self.task.who;
        match news {
            InstanceEvent::Restarted { uid, container, restart } => {
                self.known.restarted |= *uid == who.uid
                    && *container == who.container
                    && who.restart.is_none_or(|own| *restart > own);
            }
            InstanceEvent::Removed { uid } => self.known.removed |= *uid == who.uid,
        }
    }
}

/// The end of this very instance in a pod's status: the id of its container is that of no other.
fn exit_of(pod: &Value, who: &ContainerRef) -> Option<Exit> {
    let deleting = pod.pointer("/metadata/deletionTimestamp").is_some_and(|t| !t.is_null());
    let lists = ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"];
    let statuses = lists.iter().filter_map(|l| pod.pointer(&format!("/status/{l}"))?.as_array()).flatten();
    let ends = statuses.flat_map(|s| {
        ["/state/terminated", "/lastState/terminated"].iter().filter_map(|p| s.pointer(p)).collect::<Vec<_>>()
    });
    let of = |t: &&Value| {
        let id = t.get("containerID").and_then(Value::as_str).unwrap_or_default();
        !who.container_id.is_empty() && id.ends_with(&who.container_id)
    };
    let t = ends.into_iter().find(of)?;
    Some(Exit {
        code: t.get("exitCode").and_then(Value::as_i64)?,
        reason: t.get("reason").and_then(Value::as_str).unwrap_or_default().to_owned(),
        deleting,
    })
}

/// The API server's pod says more of the models than the node knew: digest of the image, volumes.
fn name_models(files: &mut [RawFile]) {
    let models = artifact::of_files(files);
    let Some(manifest) = files.iter_mut().find(|f| f.name == "manifest.json").filter(|_| !models.is_empty())
    else {
        return;
    };
    let Ok(mut value) = serde_json::from_slice::<Value>(&manifest.bytes) else { return };
    if let (Some(object), Ok(models)) = (value.as_object_mut(), serde_json::to_value(models)) {
        object.insert("models".into(), models);
        *manifest = json_file("manifest.json", &value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_exit_is_that_of_the_instance() {
        let id = "a".repeat(64);
        let pod = json!({"metadata": {"uid": "u"}, "status": {"containerStatuses": [
            {"name": "c", "state": {"terminated": {"exitCode": 0, "containerID": "containerd://b"}},
             "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "containerID": format!("containerd://{id}")}}}]}});
        let who = ContainerRef { uid: "u".into(), container_id: id, ..ContainerRef::default() };
        assert_eq!(
            exit_of(&pod, &who),
            Some(Exit { code: 137, reason: "OOMKilled".into(), deleting: false })
        );
        let other = ContainerRef { container_id: "c".repeat(64), ..who.clone() };
        assert_eq!(exit_of(&pod, &other), None, "another instance");
        assert_eq!(exit_of(&pod, &ContainerRef { container_id: String::new(), ..who }), None);
        assert_eq!(exit_of(&json!([]), &ContainerRef::default()), None);
    }
}
