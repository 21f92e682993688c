//! `dualplane apply FILE`: carries out a patch, with `rollback` the only command that changes a cluster.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use dualplane_base::text::printable;
use dualplane_core::change::{
    self, Change, Document, Made, NotMade, NotOnObject, ObjectRef, Offer, Part, Record, Role, State,
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
/// A container takes its variables from a few.
const MAX_MAPS: usize = 16;

pub(crate) fn run(args: &ApplyArgs) -> Result<Code, Failure> {
    change(args, &bytes(&args.file)?, &output::write)?;
    Ok(exit::OK)
}

/// Carries out what a document asks for; its record, or none where nothing was to be changed. `say` takes what people read.
pub(super) fn change(
    args: &ApplyArgs,
    document: &[u8],
    say: &dyn Fn(&str) -> Result<(), Failure>,
) -> Result<Option<Record>, Failure> {
    let document = change::read(document)
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
        let Some(ask) = ask(&api, &found, &knowledge).await? else {
            say(&format!(
                "Nothing to change: {} already has these settings.\n",
                printable(&found.object.to_string())
            ))?;
            return Ok(None);
        };
        // The ConfigMap first: pods that are made anew read it.
        let mut all = Vec::new();
        for (object, request) in &ask {
            all.push(apply::preview(&api, object, request).await.map_err(review::refused)?);
        }
        let Some((shown, before)) = all.split_last() else { return Ok(None) };
        let place = review::place(&shown.object, &api);
        if all.iter().all(|p| change::edits(&p.live, &p.after).is_empty()) {
            say(&format!("Nothing to change: {} already matches the patch.\n", printable(&place)))?;
            return Ok(None);
        }
        let title = offer.as_ref().map(|o| o.title.as_str());
        let mut text = String::new();
        let mut managers = Vec::new();
        for (i, one) in all.iter().enumerate() {
            review::heading(&mut text, &one.object, &api);
            if let Some(title) = title.filter(|_| i == 0) {
                let _ = writeln!(text, "{}", printable(title));
            }
            text.push('\n');
            text.push_str(&review::text(&api, one, &knowledge, colour).await);
            let found = change::managers(&one.live);
            for m in &found {
                let _ = writeln!(text, "warning: {} {}.", printable(&m.who), m.instead);
            }
            if found.is_empty() && change::applied_by_hand(&one.live) {
                text.push_str(
                    "This object was created with kubectl apply: update its manifest too, or the \
                next apply reverts this change.\n",
                );
            }
            managers.extend(found);
        }
        say(&text)?;
        if args.dry_run {
            return Ok(None);
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
        let mut record = record(&api, &changes, shown, before.first(), title);
        changes.write(&record)?;
        if let Some(file) = before.first() {
            let done = apply::carry_out(&api, file).await;
            if let (Ok(after), Some(part)) = (&done, &mut record.settings_file) {
                part.changes = change::edits(&file.live, after);
            }
            if let Err(e) = done {
                finish(&mut record, shown, &Err(e.clone()));
                changes.write(&record)?;
                return Err(review::not_done(e));
            }
        }
        let done = apply::carry_out(&api, shown).await;
        finish(&mut record, shown, &done);
        let half = record.settings_file.as_ref().filter(|_| record.state == State::Failed);
        let half = half.map(|f| f.object.to_string());
        if half.is_some() {
            // What was changed can be undone.
            record.state = State::Applied;
            record.changes.clear();
        }
        let kept = changes.write(&record);
        if let Err(e) = done {
            return Err(match half {
                Some(map) => Failure::NotChanged {
                    why: format!("{map} was changed, but {} was not: {e}", record.object),
                    hint: Some(format!("undo it with {}", record.undo)),
                },
                None => review::not_done(e),
            });
        }
        say(&after(&record))?;
        // The change is made and its plan is kept; only that it ended could not be written.
        if let Err(e) = kept {
            output::note(&format!("{e}; the record still says \"planned\", but rollback works"));
        }
        Ok(Some(record))
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

/// What changes make of the object as it is, and of the ConfigMap from which its server takes its settings.
async fn computed(api: &Api, found: &Found, live: &Value, knowledge: &Knowledge) -> Result<Made, Failure> {
    if found.changes.is_empty() {
        return Ok(Made { template: Some(change::placeholder(&found.patch, live)), map: None });
    }
    let engines = knowledge.engines();
    let container = found.container.as_deref();
    let not = |e: NotOnObject| Failure::NotChanged {
        why: format!("{}: {e}", found.object),
        hint: Some(match e {
            NotOnObject::NotMade(NotMade::Moved { .. }) => {
                "its numbers may no longer hold: triage it again, or make your own patch".into()
            }
            NotOnObject::NotMade(NotMade::Immutable { .. }) => {
                format!("{} is what to set in the copy", found.words().unwrap_or_default())
            }
            _ => format!("set {} by hand", found.words().unwrap_or_default()),
        }),
    };
    let names = change::config_maps(&found.changes, live, container, found.role, engines).map_err(not)?;
    let mut maps = Vec::new();
    for name in names.iter().take(MAX_MAPS) {
        let namespace = found.object.namespace.as_deref().unwrap_or_default();
        match apply::current(api, &apply::config_map(name, namespace)).await {
            Ok(map) => maps.push(map),
            // An optional one need not be there; without the others the settings in them are not known.
            Err(ApiError::NotFound(_)) => {}
            Err(e) => output::note(&format!(
                "cannot read ConfigMap {name}, which may hold the server's settings: {e}"
            )),
        }
    }
    let made = change::on_object(&found.changes, live, container, found.role, engines, &maps).map_err(not)?;
    // The pod of the report may have what a webhook added, or an older template.
    let differs = made.template.as_ref().is_some_and(|p| !found.patch.is_null() && *p != found.patch);
    if differs && made.map.is_none() {
        output::note("the object differs from the pod of the report: the patch was computed anew");
    }
    Ok(made)
}

/// Brings the patch to the object's form; says what cannot be changed at all. `None` where nothing is to be changed.
async fn ask(
    api: &Api,
    found: &Found,
    knowledge: &Knowledge,
) -> Result<Option<Vec<(ObjectRef, ChangeRequest)>>, Failure> {
    let live = apply::current(api, &found.object).await?;
    let mut object = found.object.clone();
    let not = |why: String, hint: String| Failure::NotChanged { why, hint: Some(hint) };
    let maker = change::managers(&live).pop().map(|m| m.who);
    let made = computed(api, found, &live, knowledge).await?;
    let namespace = object.namespace.clone().unwrap_or_default();
    let mut all: Vec<(ObjectRef, ChangeRequest)> = Vec::new();
    if let Some((name, patch)) = made.map {
        all.push((apply::config_map(&name, &namespace), ChangeRequest::Patch(patch)));
    }
    let Some(patch) = made.template else { return Ok(None) };
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
        all.push((object, ChangeRequest::Patch(patch)));
        return Ok(Some(all));
    }
    let patch = change::fit(&patch, &live, found.role).map_err(|e| {
        not(format!("{object}: {e}"), "correct the patch, or name another object with --to".into())
    })?;
    all.push((object, ChangeRequest::Patch(patch)));
    Ok(Some(all))
}

fn record(
    api: &Api,
    changes: &Changes,
    shown: &Preview,
    before: Option<&Preview>,
    title: Option<&str>,
) -> Record {
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
        settings_file: before.map(|p| Part {
            object: p.object.clone(),
            patch_type: p.patch_type.content_type().into(),
            patch: p.patch.clone(),
            changes: change::edits(&p.live, &p.after),
        }),
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
    let map = record
        .settings_file
        .as_ref()
        .map_or(String::new(), |f| format!("{} and ", printable(&f.object.to_string())));
    let mut out = format!("Changed {map}{}; recorded as {}.\n", printable(&object.to_string()), record.id);
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
