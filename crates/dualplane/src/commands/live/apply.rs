//! `dualplane apply FILE`: carries out a patch, with `rollback` the only command that changes a cluster.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use dualplane_base::text::printable;
use dualplane_core::change::{
    self, Change, Document, NotMade, NotOnObject, ObjectRef, Offer, Record, Role, State,
};
use dualplane_core::knowledge::Knowledge;
use dualplane_kube::api::{Api, ApiError};
use dualplane_kube::apply::{self, ApplyError, ChangeRequest, Preview};
use dualplane_kube::target::{Kind, Named};
use jiff::Timestamp;
use serde_json::Value;

use super::changes::Changes;
use super::{block_on, connect, review};
use crate::args::ApplyArgs;
use crate::commands::Failure;
use crate::exit::{self, Code};
use crate::{invoked, output, own_knowledge};

/// A report of many incidents is some MiB.
const MAX_FILE: u64 = 64 << 20;

pub(crate) fn run(args: &ApplyArgs) -> Result<Code, Failure> {
    let document = change::read(&bytes(&args.file)?)
        .map_err(|why| Failure::Flag { flag: "FILE", why: format!("{}: {why}", args.file.display()) })?;
    let (document, offer) = match document {
        Document::Report(offers) => (None, Some(chosen(offers, args.action)?)),
        other => (Some(other), None),
    };
    let knowledge = own_knowledge::load(None)?;
    let colour = output::style(args.color, false).colour;
    block_on(async {
        let api = connect(&args.cluster).await?;
        let found = target(&api, args, document.as_ref(), offer.as_ref()).await?;
        let ask = ask(&api, &found, &knowledge).await?;
        let Some(ask) = ask else {
            output::write(&format!(
                "Nothing to change: {} already has these settings.\n",
                printable(&found.object.to_string())
            ))?;
            return Ok(exit::OK);
        };
        let shown = apply::preview(&api, &ask.0, &ask.1).await.map_err(review::refused)?;
        let place = review::place(&shown.object, &api);
        if change::edits(&shown.live, &shown.after).is_empty() {
            output::write(&format!("Nothing to change: {} already matches the patch.\n", printable(&place)))?;
            return Ok(exit::OK);
        }
        let mut text = format!("{} ({})\n", printable(&place), printable(api.server()));
        if let Some(offer) = &offer {
            // Writing into a String cannot fail.
            let _ = writeln!(text, "{}", printable(&offer.title));
        }
        text.push('\n');
        text.push_str(&review::text(&api, &shown, &knowledge, colour).await);
        let managers = change::managers(&shown.live);
        for m in &managers {
            let _ = writeln!(text, "warning: {} {}.", printable(&m.who), m.instead);
        }
        if managers.is_empty() && change::applied_by_hand(&shown.live) {
            text.push_str(
                "This object was created with kubectl apply: update its manifest too, or the \
            next apply reverts this change.\n",
            );
        }
        output::write(&text)?;
        if args.dry_run {
            return Ok(exit::OK);
        }
        if let Some(m) = managers.first().filter(|_| !args.force_managed) {
            return Err(Failure::NotChanged {
                why: format!("{} manages this object and would revert the change", m.who),
                hint: Some(format!(
                    "{}, or use --force-managed to make it here anyway",
                    found
                        .words()
                        .map_or_else(|| "make the change there".to_owned(), |w| format!("set {w} there"))
                )),
            });
        }
        // Before the question: who answers y must not hear then that it cannot be recorded.
        let changes = Changes::here()?;
        review::confirm(&format!("Apply to {place}?"), args.yes)?;
        let mut record = record(&api, &changes, &shown, offer.as_ref().map(|o| o.title.as_str()));
        changes.write(&record)?;
        let done = apply::carry_out(&api, &shown).await;
        finish(&mut record, &shown, &done);
        let kept = changes.write(&record);
        if let Err(e) = done {
            return Err(review::not_done(e));
        }
        output::write(&after(&record))?;
        // The change is made and its plan is kept; only that it ended could not be written.
        if let Err(e) = kept {
            output::note(&format!("{e}; the record still says \"planned\", but rollback works"));
        }
        Ok(exit::OK)
    })
}

fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let unreadable = |source| Failure::Unreadable { path: path.to_path_buf(), source };
    let mut out = Vec::new();
    if path.as_os_str() == "-" {
        std::io::stdin().lock().take(MAX_FILE + 1).read_to_end(&mut out).map_err(unreadable)?;
    } else {
        File::open(path).and_then(|f| f.take(MAX_FILE + 1).read_to_end(&mut out)).map_err(unreadable)?;
    }
    if out.len() as u64 > MAX_FILE {
        let why = format!("{} is larger than {} MiB", path.display(), MAX_FILE >> 20);
        return Err(Failure::Flag { flag: "FILE", why });
    }
    Ok(out)
}

/// The one patch of a report: of its only fix that has one, or the one that is asked for.
fn chosen(mut offers: Vec<Offer>, action: Option<usize>) -> Result<Offer, Failure> {
    let not = |why: String, hint: String| Failure::NotChanged { why, hint: Some(hint) };
    if offers.is_empty() {
        return Err(not(
            "the report contains no patch".into(),
            "follow the report's instructions, or write your own patch and name the object with --to".into(),
        ));
    }
    let list: String = offers
        .iter()
        .enumerate()
        .map(|(i, o)| {
            let pod = o.subject.pod.as_deref().map_or(String::new(), |p| format!(" (pod {p})"));
            format!("\n    {}  {}: {}{pod}", i + 1, o.stage, printable(&o.title))
        })
        .collect();
    let fixes: Vec<usize> =
        (0..offers.len()).filter(|i| offers.get(*i).is_some_and(|o| o.stage == "fix")).collect();
    let at = match (action, fixes.as_slice()) {
        (Some(n), _) if n >= 1 && n <= offers.len() => n - 1,
        (Some(n), _) => {
            return Err(Failure::Flag {
                flag: "--action",
                why: format!("there is no patch {n}; available patches:{list}"),
            });
        }
        (None, [one]) => *one,
        (None, fixes) => {
            let how = if fixes.is_empty() {
                "none of the patches is a fix"
            } else {
                "several patches are \
            fixes"
            };
            return Err(not(format!("{how}:{list}"), "choose one with --action N".into()));
        }
    };
    Ok(offers.swap_remove(at))
}

/// A patch and its object.
struct Found {
    object: ObjectRef,
    patch: Value,
    role: Option<Role>,
    /// What the patch changes: it is computed anew.
    changes: Vec<Change>,
    /// Container that these are for.
    container: Option<String>,
}

impl Found {
    /// The changes in one line.
    fn words(&self) -> Option<String> {
        let words: Vec<String> = self.changes.iter().map(Change::words).collect();
        (!words.is_empty()).then(|| words.join(", "))
    }
}

async fn target(
    api: &Api,
    args: &ApplyArgs,
    document: Option<&Document>,
    offer: Option<&Offer>,
) -> Result<Found, Failure> {
    let flag = |flag: &'static str, why: String| Failure::Flag { flag, why };
    let said = match (offer, document) {
        (Some(o), _) => o.subject.namespace.as_ref(),
        (_, Some(Document::Whole(w))) => w.namespace.as_ref(),
        _ => None,
    };
    if let (Some(asked), Some(said)) = (&args.cluster.namespace, said)
        && asked != said
    {
        return Err(flag(
            "--namespace",
            format!(
                "you asked for {asked}, but {} says \
        {said}",
                args.file.display()
            ),
        ));
    }
    let namespace = said.map_or(api.namespace(), String::as_str);
    let patch = match (offer, document) {
        (Some(o), _) => o.patch.clone(),
        (_, Some(Document::Whole(w))) => w.patch.clone(),
        (_, Some(Document::Patch(p))) => p.clone(),
        _ => Value::Null,
    };
    let changes = offer.map(|o| o.changes.clone()).unwrap_or_default();
    let container = offer.and_then(|o| o.subject.container.clone());
    if let Some(word) = &args.to {
        let named = Named::parse(word)
            .ok_or_else(|| flag("--to", format!("{word} is not an object such as deploy/NAME")))?;
        return Ok(Found { object: apply::named(&named, namespace), patch, role: None, changes, container });
    }
    match (offer, document) {
        (_, Some(Document::Whole(w))) => Ok(Found {
            object: apply::whole(api, w, namespace).await?,
            patch,
            role: None,
            changes,
            container,
        }),
        (Some(offer), _) => {
            let Some(pod) = &offer.subject.pod else {
                return Err(flag(
                    "--to",
                    "the report names no pod; name the object to change, for example --to deploy/NAME".into(),
                ));
            };
            let located = apply::of_pod(api, namespace, pod).await.map_err(|e| gone(e, pod, namespace))?;
            if located.by_name {
                output::note(&format!(
                    "pod {pod} no longer exists; judging by its name, it belonged to \
                {}",
                    located.object
                ));
            }
            Ok(Found { object: located.object, patch, role: located.role, changes, container })
        }
        _ => Err(flag(
            "--to",
            "the patch names no object; name the object to change, for example --to deploy/NAME".into(),
        )),
    }
}

fn gone(fault: ApiError, pod: &str, namespace: &str) -> Failure {
    match fault {
        ApiError::NotFound(_) => Failure::Flag {
            flag: "--to",
            why: format!(
                "pod {pod} no longer exists in namespace {namespace}; name the object to change, for \
                example --to deploy/NAME"
            ),
        },
        other => Failure::Cluster(other),
    }
}

/// The patch against the object as it is; `None` where nothing is to be changed.
fn computed(found: &Found, live: &Value, knowledge: &Knowledge) -> Result<Option<Value>, Failure> {
    if found.changes.is_empty() {
        return Ok(Some(change::placeholder(&found.patch, live)));
    }
    let engines = knowledge.engines();
    let patch = change::on_object(&found.changes, live, found.container.as_deref(), found.role, engines);
    let patch = patch.map_err(|e| Failure::NotChanged {
        why: format!("{}: {e}", found.object),
        hint: Some(match e {
            NotOnObject::NotMade(NotMade::Moved { .. }) => {
                "its numbers may no longer hold: triage it again, or make your own patch".into()
            }
            _ => format!("set {} by hand", found.words().unwrap_or_default()),
        }),
    })?;
    // The pod of the report may have what a webhook added, or an older template.
    let differs = patch.as_ref().is_some_and(|p| !found.patch.is_null() && *p != found.patch);
    if differs {
        output::note("the object differs from the pod of the report: the patch was computed anew");
    }
    Ok(patch)
}

/// Brings the patch to the object's form; says what cannot be changed at all.
async fn ask(
    api: &Api,
    found: &Found,
    knowledge: &Knowledge,
) -> Result<Option<(ObjectRef, ChangeRequest)>, Failure> {
    let live = apply::current(api, &found.object).await?;
    let mut object = found.object.clone();
    let not = |why: String, hint: String| Failure::NotChanged { why, hint: Some(hint) };
    let maker = change::managers(&live).pop().map(|m| m.who);
    let Some(patch) = computed(found, &live, knowledge)? else { return Ok(None) };
    let template = patch.pointer("/spec/template").is_some();
    if object.kind == Kind::Job.kind() && template {
        let hint = match maker {
            Some(maker) => format!(
                "change {maker}, which creates it; the next Job will use the new \
            template"
            ),
            None => "delete the Job and create it again with the new values".into(),
        };
        return Err(not(
            format!(
                "Kubernetes does not allow changes to the pod template of a Job: \
        {object}"
            ),
            hint,
        ));
    }
    if object.kind == Kind::Pod.kind() {
        if let Some(maker) = maker {
            return Err(not(format!("{object} is controlled by {maker}"), "change it there".into()));
        }
        let again = "save its manifest (kubectl get pod -o yaml), edit it, then delete and recreate the pod";
        if template && !apply::resize_served(api).await? {
            return Err(not(
                format!("{object} belongs to no workload, and this API server cannot resize a running pod"),
                again.into(),
            ));
        }
        let patch = change::fit(&patch, &live, found.role).map_err(|e| {
            not(format!("{object} belongs to no workload that would recreate it, and {e}"), again.into())
        })?;
        if template {
            object.subresource = Some("resize".into());
        }
        return Ok(Some((object, ChangeRequest::Patch(patch))));
    }
    let patch = change::fit(&patch, &live, found.role).map_err(|e| {
        not(format!("{object}: {e}"), "correct the patch, or name another object with --to".into())
    })?;
    Ok(Some((object, ChangeRequest::Patch(patch))))
}

fn record(api: &Api, changes: &Changes, shown: &Preview, title: Option<&str>) -> Record {
    let when = Timestamp::now();
    let id = changes.new_id(&format!("{}{}{}", when.as_nanosecond(), std::process::id(), shown.object.uid));
    Record {
        schema: change::SCHEMA.into(),
        undo: format!("{} rollback {id}", invoked::name()),
        id,
        state: State::Planned,
        when: when.to_string(),
        finished: None,
        rolled_back: None,
        tool: concat!("dualplane ", env!("CARGO_PKG_VERSION")).into(),
        user: api.identity().user.clone(),
        server: api.server().to_owned(),
        context: api.identity().context.clone(),
        object: shown.object.clone(),
        action: title.map(ToOwned::to_owned),
        patch_type: shown.patch_type.content_type().into(),
        patch: shown.patch.clone(),
        changes: change::edits(&shown.live, &shown.after),
        why: None,
    }
}

fn finish(record: &mut Record, shown: &Preview, done: &Result<Value, ApplyError>) {
    record.finished = Some(Timestamp::now().to_string());
    match done {
        Ok(after) => {
            record.state = State::Applied;
            // A webhook may have decided otherwise than in the dry run.
            record.changes = change::edits(&shown.live, after);
        }
        Err(e) => {
            record.state = if matches!(e, ApplyError::Unknown(_)) { State::Unknown } else { State::Failed };
            record.why = Some(e.to_string());
        }
    }
}

fn after(record: &Record) -> String {
    let object = &record.object;
    let mut out = format!("Changed {}; recorded as {}.\n", printable(&object.to_string()), record.id);
    let rolls = ["Deployment", "StatefulSet", "DaemonSet"].contains(&object.kind.as_str());
    if let Some(namespace) = object.namespace.as_ref().filter(|_| rolls) {
        let _ = writeln!(out, "  watch: kubectl rollout status {object} -n {namespace}");
    }
    let _ = writeln!(out, "  undo:  {}", record.undo);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use dualplane_core::change::Subject;

    fn offers(stages: &[&str]) -> Vec<Offer> {
        let offer = |s: &&str| Offer {
            stage: (*s).to_owned(),
            title: format!("do {s}"),
            patch: Value::Null,
            changes: Vec::new(),
            subject: Subject::default(),
        };
        stages.iter().map(offer).collect()
    }

    #[test]
    fn one_fix_is_taken_and_several_are_listed() {
        assert_eq!(chosen(offers(&["prevent", "fix"]), None).unwrap().stage, "fix");
        assert_eq!(chosen(offers(&["fix", "prevent"]), Some(2)).unwrap().stage, "prevent");
        for (stages, action, says) in [
            (&["fix", "fix"][..], None, "2  fix: do fix"),
            (&["prevent"][..], None, "none of the patches is a fix"),
            (&[][..], None, "the report contains no patch"),
            (&["fix"][..], Some(2), "there is no patch 2"),
            (&["fix"][..], Some(0), "there is no patch 0"),
        ] {
            let e = chosen(offers(stages), action).unwrap_err().to_string();
            assert!(e.contains(says), "{e}");
        }
    }
}
