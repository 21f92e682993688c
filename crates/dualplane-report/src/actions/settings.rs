//! Changes of settings as values, and the one place where patches are made of them.

use std::fmt::Display;

use dualplane_base::text::printable;
use dualplane_base::units::Bytes;
use dualplane_core::change::{
    Change, NotMade, Resource, Setting, SettingsFile, managers, outcome, settings_file,
};
use dualplane_core::evidence::{ConfigMapVariable, Container};
use dualplane_core::verdict::Names;
use dualplane_engines::Kind;
use dualplane_engines::command_line::edit::{Invocation, Unchanged};
use serde_json::{Value, json};

use super::patch::container_patch;
use super::{Action, Context, Workload, names, workload};

impl Action {
    /// Gives a setting of the server this value. `now` is the value that the advice computed with, where it came from
    /// elsewhere than from the pod.
    pub(crate) fn set(self, cx: &Context<'_>, lever: &str, value: impl Display, now: Option<String>) -> Self {
        self.put(cx, lever, Some(value.to_string()), now)
    }

    /// Takes a setting of the server out, so that its default counts.
    pub(crate) fn take_out(self, cx: &Context<'_>, lever: &str, now: &str) -> Self {
        self.put(cx, lever, None, Some(now.to_owned()))
    }

    fn put(self, cx: &Context<'_>, lever: &str, value: Option<String>, now: Option<String>) -> Self {
        match cx.setting(lever, value, now) {
            Some(setting) => self.change(Change::Setting(setting)),
            None => self,
        }
    }

    /// Gives the container this memory: a limit, and a request where that changes as well.
    pub(crate) fn memory(self, cx: &Context<'_>, request: Option<Bytes>, limit: Bytes) -> Self {
        let was = cx.container().and_then(|c| c.memory_limit).map(|b| b.k8s());
        self.change(Change::Resource(Resource {
            name: "memory".to_owned(),
            limit: Some(limit.k8s()),
            request: request.map(|r| r.k8s()),
            was,
        }))
    }

    pub(crate) fn change(mut self, change: Change) -> Self {
        self.changes.push(change);
        self
    }
}

impl<'a> Context<'a> {
    /// The container that the verdict is about.
    pub(super) fn container(&self) -> Option<&'a Container> {
        let subject = &self.verdict.subject;
        let pod = subject.pod_of(self.bundle)?;
        pod.containers.iter().find(|c| Some(&c.name) == subject.container.as_ref())
    }

    /// What it starts with: as its owner's template says it, where the evidence has that, since a webhook may have added to
    /// the pod.
    fn invocation(&self) -> Option<&'a Invocation> {
        let container = self.container()?;
        let owner =
            self.verdict.subject.pod_of(self.bundle).and_then(|p| p.owner.as_ref()).map(|o| o.1.as_str());
        let of = |name: &str| {
            owner.is_some_and(|o| o == name || o.rsplit_once('-').is_some_and(|(d, _)| d == name))
        };
        let template = self.bundle.templates.iter().filter(|t| of(&t.name)).flat_map(|t| &t.containers);
        let template = template.filter(|c| c.name == container.name).find_map(|c| c.invocation.as_ref());
        template.or(container.invocation.as_ref())
    }

    fn setting(&self, lever: &str, value: Option<String>, now: Option<String>) -> Option<Setting> {
        let own = self.facts.engine.head()?;
        let hosted = || self.knowledge.engines().usual().filter(|_| own.kind == Kind::Host);
        let (engine, names) = own
            .spellings(lever)
            .map(|n| (own, n))
            .or_else(|| hosted().and_then(|h| Some((h, h.spellings(lever)?))))?;
        Some(self.named(&engine.id, names.to_vec(), value, now))
    }

    /// A variable of the environment that libraries read, whatever the engine.
    pub(super) fn variable(&self, name: &str, value: String) -> Option<Setting> {
        let engine = self.engine().or_else(|| self.knowledge.engines().usual())?;
        Some(self.named(&engine.id, vec![name.to_owned()], Some(value), None))
    }

    /// The value of a variable that the container is given.
    pub(super) fn value_of(&self, name: &str) -> Option<String> {
        self.invocation()?.value(&[name.to_owned()], self.knowledge.engines())
    }

    pub(super) fn named(
        &self,
        engine: &str,
        names: Vec<String>,
        value: Option<String>,
        now: Option<String>,
    ) -> Setting {
        let engines = self.knowledge.engines();
        let of = self.invocation();
        // A variable that comes from another object is there, without its value.
        let seen = of.and_then(|i| i.value(&names, engines)).filter(|v| !v.is_empty());
        let hides = |i: &Invocation| engines.get(engine).is_some_and(|e| i.may_hide(&names, e));
        let shown = of.is_some_and(|i| seen.is_some() || !hides(i));
        let was = if shown { seen } else { now };
        Setting { engine: engine.to_owned(), names, value, was, shown }
    }

    /// So many GPUs for the container: what that changes, and `None` where the evidence does not show how it asks for them.
    pub(super) fn gpus(&self, want: u64) -> Option<Vec<Change>> {
        let (name, count) = self.container()?.devices.iter().find(|(n, _)| n.ends_with("/gpu"))?;
        let change = Resource {
            name: name.clone(),
            limit: Some(want.to_string()),
            request: None,
            was: Some(count.to_string()),
        };
        Some(if *count < want { vec![Change::Resource(change)] } else { Vec::new() })
    }
}

/// Makes the patches of all actions that change settings.
pub(super) fn render(cx: &Context<'_>, actions: &mut [Action]) {
    for a in actions.iter_mut().filter(|a| a.patch.is_none() && !a.changes.is_empty()) {
        let known = cx.invocation();
        let none = Invocation::default();
        match outcome(&a.changes, known.unwrap_or(&none), cx.knowledge.engines()) {
            Ok(made) if made.fields.is_empty() => {}
            Ok(made) => {
                a.patch =
                    Some(dualplane_base::yaml::manifest(&container_patch(cx, Value::Object(made.fields))));
                if !made.hidden.is_empty() {
                    let names = made.hidden.iter().map(|n| format!("${n}")).collect::<Vec<_>>().join(", ");
                    a.arithmetic.push(format!(
                        "patch: the evidence does not show {names}; the last flag on the command line counts"
                    ));
                }
                elsewhere(cx, a);
            }
            Err(NotMade::Unchanged(Unchanged::File(_))) if in_file(cx, a).is_some_and(|f| f.overrides) => {}
            // Without a pod there is nothing to say of its command line.
            Err(NotMade::Unchanged(why)) if known.is_some() => a.arithmetic.push(format!("no patch: {why}")),
            Err(_) => {}
        }
        if let Some(file) = in_file(cx, a) {
            let SettingsFile { flag, map, key, overrides } = &file;
            let (map, key) = (printable(map), printable(key));
            a.arithmetic.push(if *overrides {
                format!(
                    "{flag} reads key {key} of ConfigMap {map}, which overrides the command line: `dualplane apply` sets it \
                    there and has the pods made anew"
                )
            } else {
                format!("where key {key} of ConfigMap {map} ({flag}) sets it, `dualplane apply` changes it there instead")
            });
        }
    }
}

/// The file from which the server takes its settings, where a ConfigMap holds it.
fn in_file(cx: &Context<'_>, a: &Action) -> Option<SettingsFile> {
    let engines = cx.knowledge.engines();
    let engine = a.changes.iter().find_map(|c| match c {
        Change::Setting(s) => engines.get(&s.engine),
        Change::Resource(_) => None,
    })?;
    let of = cx.container()?;
    settings_file(cx.invocation()?, &of.files, &of.directory, engine, engines)
}

/// Who would revert it, and what is to be set there; where a variable stands in a ConfigMap, what to change in it instead.
fn elsewhere(cx: &Context<'_>, a: &mut Action) {
    let Some(pod) = cx.verdict.subject.pod_of(cx.bundle) else { return };
    let owner = pod.owner.as_ref().map(|o| o.1.as_str());
    let of =
        |name: &str| owner.is_some_and(|o| o == name || o.rsplit_once('-').is_some_and(|(d, _)| d == name));
    let marks = cx.bundle.templates.iter().filter(|t| of(&t.name)).flat_map(|t| &t.managed);
    let marks: serde_json::Map<String, Value> =
        pod.labels.iter().chain(marks).map(|(k, v)| (k.clone(), Value::String(v.clone()))).collect();
    let words: Vec<String> = a.changes.iter().map(|c| in_values(cx, &pod.labels, c)).collect();
    let words = words.join(", ");
    for m in managers(&json!({ "metadata": { "labels": marks, "annotations": marks } })) {
        a.arithmetic.push(format!("{} {}: {words}", m.who, m.instead));
        let release = m.release.as_deref().map(|r| Names::safe(Some(r), "")).filter(|r| !r.is_empty());
        if let Some(release) = release {
            let ns = names(cx).ns;
            a.commands.push(format!("helm get values {release} -n {ns} -o yaml > values.yaml"));
            a.arithmetic.push(format!(
                "then helm upgrade {release} -n {ns} -f values.yaml, with the chart that it was installed from"
            ));
        }
    }
    let made: Vec<(String, String)> = a.changes.iter().filter_map(|c| in_config_map(cx, c)).collect();
    for (words, command) in made {
        a.arithmetic.push(words);
        a.commands.push(command);
        if let Workload::Rolling(to) = workload(cx) {
            a.commands.push(format!("kubectl rollout restart {to} -n {}", names(cx).ns));
        }
    }
}

/// A change in words, with its place among the values of a chart that is known.
fn in_values(cx: &Context<'_>, labels: &[(String, String)], change: &Change) -> String {
    let (engine, name) = match change {
        Change::Setting(s) => {
            (cx.knowledge.engines().get(&s.engine), s.names.first().map_or("", String::as_str))
        }
        Change::Resource(r) => (cx.engine(), r.name.as_str()),
    };
    let pairs = || labels.iter().map(|(k, v)| (k.as_str(), v.as_str()));
    let place = engine.and_then(|e| e.charts.iter().find_map(|c| c.path(name, pairs())));
    match place {
        Some(place) => format!("{} ({place})", change.words()),
        None => change.words(),
    }
}

/// The setting is a variable that the container takes from a ConfigMap.
fn in_config_map(cx: &Context<'_>, change: &Change) -> Option<(String, String)> {
    let Change::Setting(s) = change else { return None };
    let value = s.value.as_deref()?;
    let named = |v: &&ConfigMapVariable| s.names.contains(&v.variable);
    let v = cx.container()?.config_maps.iter().find(named)?;
    let (map, key) = (Names::safe(Some(&v.map), ""), v.key.as_str());
    // Both go into a shell's quotes.
    let plain =
        |t: &str| !t.is_empty() && t.chars().all(|c| c.is_ascii_alphanumeric() || "._:,=-/".contains(c));
    if map.is_empty() || !plain(key) || !plain(value) {
        return None;
    }
    let words = format!(
        "the variable stands in ConfigMap {map}, key {key}: change it there instead of by the patch, and restart the pods, which \
        read it only when they start"
    );
    let ns = names(cx).ns;
    Some((
        words,
        format!(
            "kubectl patch configmap {map} -n {ns} --type=merge -p '{{\"data\":{{\"{key}\":\"{value}\"}}}}'"
        ),
    ))
}
