//! The map as a tree: from the pod to its driver, or from the device to its holders, as it was asked.

use super::tree::{Branch, Tone, draw};
use crate::map::{
    Attribute, Attributes, ContainerMap, Device, End, Holder, Link, Map, NodeMap, PodMap, Process,
};
use crate::page::Page;
use dualplane_base::Confidence;
use dualplane_base::style::Style;

/// Without `wide`: of a node only what decides about its GPUs.
const FEW_OF_NODE: &[&str] =
    &["driver", "CUDA", "card", "sharing", "MIG strategy", "kernel", "container runtime", "kubelet"];
/// Without `wide`: models and other holders.
const FEW: usize = 8;

/// Renders a map; `wide` shows every source with its confidence.
#[must_use]
pub fn text(map: &Map, style: Style, wide: bool) -> String {
    let r = Render { map, wide };
    let mut w = Page::new(style);
    let mut roots: Vec<Branch> = map.process.iter().map(process).collect();
    match map.from {
        End::Pods => roots.extend(map.pods.iter().map(|p| r.pod(p))),
        End::Node => {
            roots.extend(map.nodes.iter().map(|n| r.node_with_devices(n)));
            // A pod whose device nobody names would not appear at all.
            let lost = |p: &&PodMap| p.containers.iter().all(|c| c.devices.is_empty());
            roots.extend(map.pods.iter().filter(lost).map(|p| r.pod(p)));
        }
        End::Device => roots.extend(map.devices.iter().map(|d| r.device_on_node(d))),
    }
    for (i, root) in roots.iter().enumerate() {
        if i > 0 {
            w.out.push('\n');
        }
        draw(root, style, &mut w.out);
    }
    w.contradictions(map);
    w.gaps(map);
    w.finish()
}

fn process(p: &Process) -> Branch {
    let name = if p.comm.is_empty() { String::new() } else { format!(" ({})", p.comm) };
    let mut b = Branch::name("process", format!("{}{name}", p.pid));
    b.children
        .push(Branch::new("cgroup", &p.path).told(format!("/proc/{}/cgroup, cgroup v{}", p.pid, p.version)));
    let mut told = |label, value: Option<&str>| {
        if let Some(v) = value {
            b.children.push(Branch::new(label, v).told("path of the cgroup"));
        }
    };
    told("pod UID", p.pod_uid.as_deref());
    told("container", p.container_id.as_deref());
    told("runtime", p.runtime);
    told("QoS", p.qos);
    told("cgroup driver", p.driver);
    b
}

struct Render<'m> {
    map: &'m Map,
    wide: bool,
}

impl Render<'_> {
    fn source(&self, l: &Link) -> String {
        if self.wide || l.confidence < Confidence::High {
            format!("{}, {}", l.source, l.confidence)
        } else {
            l.source.clone()
        }
    }

    fn link(&self, label: &str, l: &Link) -> Branch {
        Branch::new(label, &l.value).told(self.source(l))
    }

    /// A property; its other sources below it where they differ, or all with `wide`.
    fn attribute(&self, a: &Attribute) -> Option<Branch> {
        let mut b = self.link(a.name, a.best()?);
        if a.disagrees() {
            b.tone = Tone::Bad;
        }
        if self.wide || a.disagrees() {
            b.children = a.links.iter().skip(1).map(|l| self.link("", l)).collect();
        }
        Some(b)
    }

    /// Those of `only` in its order; all as they were told with `wide`, or without `only`.
    fn attributes(&self, all: &Attributes, only: Option<&[&str]>) -> Vec<Branch> {
        match only.filter(|_| !self.wide) {
            Some(only) => only.iter().filter_map(|n| self.attribute(all.get(n)?)).collect(),
            None => all.iter().filter_map(|a| self.attribute(a)).collect(),
        }
    }

    fn pod(&self, p: &PodMap) -> Branch {
        let mut b = Branch::name("pod", p.full_name());
        b.source = p.phase.clone();
        b.children.extend(p.services.iter().map(|s| self.link("request", s)));
        b.children.extend(p.owner.iter().filter(|_| self.wide).map(|o| self.link("owner", o)));
        b.children.extend(p.containers.iter().map(|c| self.container(p, c)));
        if let Some(link) = &p.node {
            let known = self.map.nodes.iter().find(|n| n.name == link.value);
            let mut node = Branch::name("node", &link.value).told(self.source(link));
            node.children =
                known.map(|n| self.attributes(&n.attributes, Some(FEW_OF_NODE))).unwrap_or_default();
            b.children.push(node);
        }
        b
    }

    fn container(&self, p: &PodMap, c: &ContainerMap) -> Branch {
        let mut b = Branch::name("container", &c.name);
        b.source = c.state.clone();
        b.children = self.serving(c);
        if self.wide {
            for (label, value, source) in [("image", &c.image, "pod's spec"), ("id", &c.id, "pod's status")] {
                if !value.is_empty() {
                    b.children.push(Branch::new(label, value).told(source));
                }
            }
        }
        b.children.extend(c.asks.iter().map(|a| self.link("asks for", a)));
        for id in &c.devices {
            if let Some(d) = self.map.devices.iter().find(|d| d.id == *id) {
                b.children.push(self.device(d, Some((p, c))));
            }
        }
        b
    }

    /// Models and engine: what answers the request.
    fn serving(&self, c: &ContainerMap) -> Vec<Branch> {
        let mut out = Vec::new();
        let answered = c.models.iter().any(|m| m.id.confidence == Confidence::High);
        let most = if self.wide { usize::MAX } else { FEW };
        // Once the engine has answered, its command line is only of interest where it differs.
        let shown = |m: &&crate::map::Model| self.wide || !answered || m.id.confidence == Confidence::High;
        for m in c.models.iter().filter(shown).take(most) {
            let mut text = m.id.value.clone();
            if let Some(root) = &m.root {
                text.push_str(&format!(" of {root}"));
            }
            if let Some(n) = m.max_len {
                text.push_str(&format!(", at most {} tokens", dualplane_base::units::thousands(n)));
            }
            out.push(Branch::new("model", text).told(self.source(&m.id)));
        }
        out.extend(self.attributes(&c.engine, None));
        out
    }

    fn device(&self, d: &Device, of: Option<(&PodMap, &ContainerMap)>) -> Branch {
        let own = |h: &&Holder| {
            of.is_some_and(|(p, c)| {
                h.namespace == p.namespace
                    && h.pod == p.name
                    && (h.container == c.name || h.container.is_empty())
            })
        };
        let mut b = Branch::name(if d.mig { "MIG instance" } else { "GPU" }, &d.id);
        let mine = d.holders.iter().find(own);
        if let Some(h) = mine {
            b.source = self.holding(h);
            if let Some(health) = h.health.as_deref().filter(|h| *h != "Healthy") {
                b.children.push(
                    Branch { tone: Tone::Bad, ..Branch::new("health", health) }
                        .told("allocatedResourcesStatus of the pod"),
                );
            }
        }
        b.children.extend(
            self.attributes(&d.attributes, Some(&["card", "profile", "parent", "memory", "used", "free"])),
        );
        if let Some(shared) = &d.shared {
            b.children.push(Branch { tone: Tone::Bad, ..Branch::new("shared", shared) });
        }
        let others: Vec<&Holder> = d.holders.iter().filter(|h| !own(h)).collect();
        let most = if self.wide || of.is_none() { usize::MAX } else { FEW };
        for h in others.iter().take(most) {
            let label = if of.is_some() { "also held by" } else { "held by" };
            let mut holder = Branch::new(label, h.full_name()).told(self.holding(h));
            if of.is_none() {
                let pod = self.map.pods.iter().find(|p| p.namespace == h.namespace && p.name == h.pod);
                let container = pod.and_then(|p| p.containers.iter().find(|c| c.name == h.container));
                holder.children = container.map(|c| self.serving(c)).unwrap_or_default();
            }
            b.children.push(holder);
        }
        if others.len() > most {
            b.children
                .push(Branch::new("", format!("and {} others; -o wide lists them", others.len() - most)));
        }
        if of.is_none() && d.holders.is_empty() {
            b.children.push(Branch::new("held by", "no user named by any source"));
        }
        b
    }

    fn holding(&self, h: &Holder) -> String {
        let sources: Vec<String> = h.links.iter().map(|l| self.source(l)).collect();
        sources.join("; ")
    }

    fn device_on_node(&self, d: &Device) -> Branch {
        let mut b = self.device(d, None);
        if let Some(name) = &d.node {
            let mut node = Branch::name("node", name);
            let known = self.map.nodes.iter().find(|n| n.name == *name);
            node.children =
                known.map(|n| self.attributes(&n.attributes, Some(FEW_OF_NODE))).unwrap_or_default();
            b.children.push(node);
        }
        b
    }

    fn node_with_devices(&self, n: &NodeMap) -> Branch {
        let mut b = Branch::name("node", &n.name);
        b.children = self.attributes(&n.attributes, Some(FEW_OF_NODE));
        let here = self.map.devices.iter().filter(|d| d.node.as_ref() == Some(&n.name));
        b.children.extend(here.map(|d| self.device(d, None)));
        b
    }
}

impl Page {
    fn contradictions(&mut self, map: &Map) {
        if map.contradictions.is_empty() {
            return;
        }
        self.heading("Contradictions");
        for c in &map.contradictions {
            self.wrapped(&c.what, "  ✗ ", "    ");
            for l in &c.told {
                self.wrapped(&format!("{} [{}, {}]", l.value, l.source, l.confidence), "      ", "        ");
            }
            self.command(c.settle.as_deref());
        }
    }

    fn gaps(&mut self, map: &Map) {
        if map.gaps.is_empty() {
            return;
        }
        self.heading("Missing");
        for g in &map.gaps {
            self.wrapped(&format!("{}: {}", g.what, g.why), "  ? ", "    ");
            self.command(g.command.as_deref());
        }
    }

    /// Commands are never wrapped: they are copied.
    fn command(&mut self, command: Option<&str>) {
        if let Some(c) = command {
            let c = dualplane_base::text::printable(c).into_owned();
            self.line(&format!("      $ {c}"));
        }
    }
}
