//! A model server in a cluster that `tune` moves: its command line, a move by `apply`, the way back by `rollback`, and the wait
//! until its pods are replaced.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use dualplane_base::json::{list, str_at};
use dualplane_base::text::printable;
use dualplane_core::change::{self, ObjectRef, Progress, Record, State};
use dualplane_core::evidence::invocation;
use dualplane_engines::Engines;
use dualplane_kube::apply;
use dualplane_kube::target::Named;
use dualplane_tune::{Proposal, SCHEMA};
use serde_json::{Value, json};

use super::changes::Changes;
use super::{block_on, connect, review};
use crate::args::{ApplyArgs, ClusterArgs, Colour, ListFormat, RollbackArgs, TuneArgs};
use crate::commands::Failure;
use crate::output;

/// How often the workload is asked how far it is.
const EVERY: Duration = Duration::from_secs(2);

/// The workload that is tuned.
pub(in crate::commands) struct Workload {
    args: TuneArgs,
    to: String,
    object: ObjectRef,
    /// Words of the command that starts the engine.
    command: Vec<String>,
    /// The engine's id.
    engine: String,
    /// The last change of this search, which was not undone.
    change: RefCell<Option<String>>,
}

impl Workload {
    /// Finds it, and the container that starts an engine.
    pub(in crate::commands) fn find(args: &TuneArgs, to: &str) -> Result<Self, Failure> {
        let flag = |why: String| Failure::Flag { flag: "--to", why };
        let named =
            Named::parse(to).filter(|n| ["Deployment", "StatefulSet", "DaemonSet"].contains(&n.kind.kind()));
        let named = named.ok_or_else(|| flag(format!("{to} is not deploy/NAME, sts/NAME or ds/NAME")))?;
        let (object, live) = block_on(async {
            let api = connect(&args.cluster).await?;
            let object = apply::named(&named, api.namespace());
            let live = apply::current(&api, &object).await?;
            Ok((ObjectRef { uid: str_at(&live, "/metadata/uid").to_owned(), ..object }, live))
        })?;
        let (engine, command) = server(&live, args.engine.as_deref()).map_err(flag)?;
        Ok(Self {
            args: args.clone(),
            to: to.to_owned(),
            object,
            command,
            engine,
            change: RefCell::default(),
        })
    }

    /// Words of the command that starts the engine, now.
    pub(in crate::commands) fn command(&self) -> &[String] {
        &self.command
    }

    /// The engine's id.
    pub(in crate::commands) fn engine(&self) -> &str {
        &self.engine
    }

    /// `serving/deployment/llm`, as the log names it.
    pub(in crate::commands) fn name(&self) -> String {
        let namespace = self.object.namespace.as_ref().map_or(String::new(), |n| format!("{n}/"));
        format!("{namespace}{}", self.object)
    }

    /// Asks before the first change.
    pub(in crate::commands) fn confirm(&self) -> Result<(), Failure> {
        let question = format!(
            "Tune {}? Each of up to {} moves replaces its pods.",
            printable(&self.name()),
            self.args.steps
        );
        review::confirm(&question, self.args.yes)
    }

    /// Makes a move, and waits; false where its pods do not come up with it.
    pub(in crate::commands) fn make(&self, p: &Proposal) -> Result<bool, Failure> {
        let document = serde_json::to_vec(&json!({"schema": SCHEMA, "proposal": p}))?;
        let args = ApplyArgs {
            file: PathBuf::from("the move"),
            action: None,
            to: Some(self.to.clone()),
            dry_run: false,
            yes: true,
            force_managed: self.args.force_managed,
            cluster: self.cluster(),
            color: Colour::Never,
        };
        // A move that a search before this one made already changes nothing, and its record is there.
        if let Some(record) = super::apply::change(&args, &document, &told)? {
            self.change.replace(Some(record.id));
        }
        self.settles()
    }

    /// Undoes the last move, and waits.
    pub(in crate::commands) fn back(&self) -> Result<(), Failure> {
        let changes = Changes::here()?;
        let record = match self.change.take() {
            Some(id) => super::changes::find(changes.all()?, &id)?,
            None => self.newest(changes.all()?)?,
        };
        let args = RollbackArgs {
            id: Some(record.id.clone()),
            last: false,
            force: false,
            keep_changed: false,
            dry_run: false,
            yes: true,
            output: ListFormat::Text,
            cluster: self.cluster(),
            color: Colour::Never,
        };
        super::rollback::undo(&args, &changes, record, &told)?;
        if self.settles()? {
            return Ok(());
        }
        Err(Failure::NotChanged {
            why: format!("{} has its settings of before, but its pods do not come up", self.name()),
            hint: Some("look at its pods; then the same command goes on with the search".into()),
        })
    }

    /// The newest change of this object that was not undone.
    fn newest(&self, records: Vec<Record>) -> Result<Record, Failure> {
        let same = |r: &Record| {
            r.object.uid == self.object.uid && !matches!(r.state, State::Failed | State::RolledBack)
        };
        records.into_iter().find(same).ok_or_else(|| Failure::NotChanged {
            why: format!(
                "{} has no change that this machine made, so the last move cannot be undone",
                self.name()
            ),
            hint: Some("set the flag by hand, or begin with another --log".into()),
        })
    }

    /// Waits until its pods are of the newest template and serve; false where that does not come about.
    pub(in crate::commands) fn settles(&self) -> Result<bool, Failure> {
        let until = Instant::now() + self.args.rollout_timeout;
        let mut said = String::new();
        block_on(async {
            let api = connect(&self.args.cluster).await?;
            loop {
                let why = match change::progress(&apply::current(&api, &self.object).await?) {
                    Progress::Done => return Ok(true),
                    Progress::Stuck(why) => {
                        output::note(&format!("{}: {why}", self.name()));
                        return Ok(false);
                    }
                    Progress::Going(why) => why,
                };
                if why != said {
                    output::note(&format!("{}: {why}", self.name()));
                    said = why;
                }
                if Instant::now() >= until {
                    output::note(&format!("{}: not done within --rollout-timeout", self.name()));
                    return Ok(false);
                }
                tokio::time::sleep(EVERY).await;
            }
        })
    }

    /// The same cluster, with the namespace of the object.
    fn cluster(&self) -> ClusterArgs {
        ClusterArgs { namespace: self.object.namespace.clone(), ..self.args.cluster.clone() }
    }
}

/// What `apply` and `rollback` print stands beside the notes: standard output is for the answer.
fn told(text: &str) -> Result<(), Failure> {
    text.lines().filter(|l| !l.trim().is_empty()).for_each(|l| output::log(&printable(l)));
    Ok(())
}

/// The engine, and the words of the command that starts it: of the one container that does.
fn server(object: &Value, asked: Option<&str>) -> Result<(String, Vec<String>), String> {
    let engines = Engines::embedded();
    let all = list(object, "/spec/template/spec/containers");
    let found: Vec<_> = all.iter().filter_map(|c| invocation(c).launch(engines)).collect();
    let fits = |id: &str| asked.is_none_or(|a| a == id);
    let mut found = found.into_iter().filter(|(engine, _)| fits(&engine.id));
    match (found.next(), found.next()) {
        (Some((engine, words)), None) => Ok((engine.id.clone(), words)),
        (Some(_), Some(_)) => Err("several of its containers start an engine".to_owned()),
        (None, _) => {
            Err("none of its containers starts an engine by a command line that can be read".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_the_one_container_that_starts_an_engine() {
        let object = |containers: Value| json!({"spec": {"template": {"spec": {"containers": containers}}}});
        let mesh =
            json!({"name": "mesh", "image": "envoyproxy/envoy:v1", "args": ["--config-path", "/e.yaml"]});
        let vllm = json!({"name": "s", "image": "vllm/vllm-openai:v0.11.0", "args": ["--model", "m", "--max-num-seqs", "2"]});
        let shell = json!({"name": "t", "image": "x", "command": ["sh", "-c", "ulimit -n 9; exec vllm serve m --max-num-seqs=4"]});
        let words = |c: Value| server(&object(c), None).map(|(engine, words)| (engine, words.join(" ")));
        assert_eq!(words(json!([mesh, vllm])), Ok(("vllm".into(), "--model m --max-num-seqs 2".into())));
        let (engine, line) = words(json!([shell])).unwrap();
        assert!(engine == "vllm" && line.ends_with("vllm serve m --max-num-seqs=4"), "{line}");
        assert!(words(json!([vllm, shell])).unwrap_err().contains("several"));
        assert!(words(json!([mesh])).unwrap_err().contains("none of its containers"));
        assert!(server(&object(json!([vllm])), Some("sglang")).is_err());
    }
}
