//! Which servers there are: those of the file, and the pods of its Services as they come and go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};

use crate::config::{Checked, Target};
use crate::discover::News;
use crate::service::Service;
use crate::slices::Behind;
use crate::state::{Seen, State};

/// The number of no server: a pool whose Service has no pod now takes none, which is not the same as any.
const NONE: usize = usize::MAX;

/// What is known of a Service.
#[derive(Debug, Clone, Default)]
pub(crate) struct Followed {
    /// Who stands behind it, as last heard.
    pub(crate) behind: Behind,
    /// It was heard at all.
    pub(crate) heard: bool,
    /// Why that may be out of date.
    pub(crate) trouble: Option<String>,
}

/// What the servers are made of.
pub(crate) struct Parts {
    file: Checked,
    pub(crate) services: BTreeMap<String, Followed>,
    /// How the pods that are there were named, by where they answer: one keeps its name when the pod goes for which it got a
    /// longer one, and so stays the same server.
    names: BTreeMap<String, String>,
}

impl Parts {
    pub(crate) fn of(file: Checked) -> Self {
        let services = file.services.iter().map(|s| (s.name.clone(), Followed::default())).collect();
        Self { file, services, names: BTreeMap::new() }
    }

    /// The file with all that was found. A pod is one server, whichever Services it stands behind.
    fn all(&mut self) -> Checked {
        let mut all = self.file.clone();
        let mut names = BTreeMap::new();
        let found =
            |s: &Service| self.services.get(&s.name).map(|f| f.behind.servers.clone()).unwrap_or_default();
        let there: BTreeSet<String> = self
            .file
            .services
            .iter()
            .flat_map(|s| found(s).into_iter().map(|f| s.target(&f).authority))
            .collect();
        for service in &self.file.services {
            for found in &found(service) {
                let mut target = service.target(found);
                if all.targets.iter().any(|t| t.authority == target.authority) {
                    continue;
                }
                // What another pod that is still there is called is taken before its turn.
                let kept = |(of, n): (&String, &String), name: &str| {
                    n == name && *of != target.authority && there.contains(of)
                };
                let taken = |name: &str| {
                    all.targets.iter().any(|t| t.name == name) || self.names.iter().any(|k| kept(k, name))
                };
                match self.names.get(&target.authority).filter(|known| !taken(known)) {
                    Some(known) => target.name.clone_from(known),
                    None if taken(&target.name) => {
                        target.name = format!("{}-{}", target.name, target.authority);
                    }
                    None => {}
                }
                names.insert(target.authority.clone(), target.name.clone());
                all.targets.push(target);
            }
        }
        self.names = names;
        all
    }
}

/// Servers that have to be watched from now on, each with its term.
pub(crate) type New = Vec<(usize, u64)>;

impl State {
    /// Takes on another file: servers are known by their names, what runs goes on. Services that it does not name are
    /// forgotten, the others stay as they were heard.
    pub(crate) fn reload(&self, file: Checked) -> New {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut new = Parts::of(file);
        new.names = std::mem::take(&mut parts.names);
        for service in &new.file.services {
            if parts.file.services.iter().any(|s| s.is(service))
                && let Some(known) = parts.services.remove(&service.name)
            {
                new.services.insert(service.name.clone(), known);
            }
        }
        *parts = new;
        self.take_on(parts.all())
    }

    /// Takes in what was heard of a Service.
    pub(crate) fn heard(&self, service: &Service, news: News) -> New {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if !parts.file.services.iter().any(|s| s.is(service)) {
            return New::new();
        }
        let known = parts.services.entry(service.name.clone()).or_default();
        match news {
            News::Trouble(why) => {
                known.trouble = Some(why);
                New::new()
            }
            News::Is(behind) => {
                *known = Followed { behind, heard: true, trouble: None };
                self.take_on(parts.all())
            }
        }
    }

    /// What is known of each Service.
    pub(crate) fn services(&self) -> Vec<(String, Followed)> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.services.iter().map(|(n, f)| (n.clone(), f.clone())).collect()
    }

    fn take_on(&self, all: Checked) -> New {
        let now = self.now();
        let mut gate = self.gate();
        let (mut current, mut new) = (Vec::new(), New::new());
        for target in &all.targets {
            let same = |t: &Arc<Target>| t.name == target.name && t.authority == target.authority;
            let number = match gate.targets.iter().position(same) {
                Some(known) => known,
                None => {
                    let number = gate.admission.add_server(now, all.server(target));
                    // The place of one that is over, or the next.
                    if let Some(seen) = gate.seen.get_mut(number) {
                        *seen = Seen::default();
                    } else {
                        gate.targets.push(Arc::new(target.clone()));
                        gate.seen.push(Seen::default());
                        gate.terms.push(0);
                    }
                    number
                }
            };
            if !gate.current.contains(&number) {
                gate.admission.bring_back(number);
                let term = gate.terms.get_mut(number).map_or(0, |t| {
                    *t += 1;
                    *t
                });
                new.push((number, term));
            }
            if let Some(t) = gate.targets.get_mut(number) {
                *t = Arc::new(target.clone());
            }
            if let Some(s) = gate.admission.server_mut(number) {
                // What the server said of itself stays where the file says nothing.
                let said = s.limits;
                let limits = all.limits(target);
                s.limits = limits;
                s.limits.kv = limits.kv.or(said.kv);
                s.limits.one = said.one;
                s.limits.block = target.said.block_tokens.unwrap_or(said.block);
            }
            current.push(number);
        }
        for gone in gate.current.clone().into_iter().filter(|n| !current.contains(n)) {
            gate.admission.retire(now, gone);
            // Whoever watches it must not take another for it.
            if let Some(term) = gate.terms.get_mut(gone) {
                *term += 1;
            }
        }
        let mut policy = all.policy.clone();
        for (pool, said) in policy.pools.iter_mut().zip(&all.config.pool) {
            if said.servers.is_empty() {
                continue;
            }
            let named =
                |t: &Target| said.servers.iter().any(|s| *s == t.name || Some(s) == t.service.as_ref());
            let of = all.targets.iter().zip(&current).filter(|(t, _)| named(t)).map(|(_, n)| *n);
            pool.servers = of.collect();
            if pool.servers.is_empty() {
                pool.servers.push(NONE);
            }
        }
        gate.admission.set_policy(policy);
        gate.current = current;
        drop(gate);
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(all);
        self.pump();
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::AccessLog;
    use crate::config::Config;
    use crate::slices::{Found, Stands};

    fn state(text: &str) -> Arc<State> {
        let config: Config = toml::from_str(text).unwrap();
        State::new(config.check().unwrap(), AccessLog::none(), None)
    }

    fn found(name: &str, authority: &str) -> Found {
        Found {
            name: name.into(),
            authority: authority.into(),
            namespace: "s".into(),
            node: "n".into(),
            stands: Stands::Ready,
        }
    }

    fn is(servers: Vec<Found>) -> News {
        News::Is(Behind { servers, ..Behind::default() })
    }

    const FILE: &str = "[kubernetes]\napi = \"http://127.0.0.1:1\"\n[[server]]\nname = \"fixed\"\nurl = \"http://10.0.0.9:80\"\n\
        [[service]]\nname = \"s/a\"\nagent = \"http://{node}:1/metrics\"\ncontainer = \"{namespace}/{pod}/c\"\n\
        [[service]]\nname = \"s/b\"\n[[pool]]\nname = \"long\"\nservers = [\"s/a\"]\n";

    #[test]
    fn pods_come_and_go_and_each_is_one_server() {
        let state = state(FILE);
        let services = state.config().services.clone();
        let names = || state.config().targets.iter().map(|t| t.name.clone()).collect::<Vec<_>>();
        let pool = || state.gate().admission.policy().pools[0].servers.clone();
        assert_eq!(
            state.heard(&services[0], is(vec![found("p0", "10.0.0.1:80"), found("p1", "10.0.0.2:80")])),
            [(1, 1), (2, 1)]
        );
        assert_eq!((names(), pool()), (vec!["fixed".into(), "p0".into(), "p1".into()], vec![1, 2]));
        let said = state.config().targets[1].said.clone();
        assert_eq!(
            (said.agent.as_deref(), said.container.as_deref()),
            (Some("http://n:1/metrics"), Some("s/p0/c"))
        );
        // Another Service before the same pod, and a name that another namespace has, too.
        assert_eq!(
            state.heard(&services[1], is(vec![found("p0", "10.0.0.1:80"), found("p1", "10.0.0.7:80")])).len(),
            1
        );
        assert_eq!(names().last().unwrap(), "p1-10.0.0.7:80");
        // Whoever comes with a name that one has, whichever Service is asked first, takes it from nobody.
        let two = vec![found("p0", "10.0.0.8:80"), found("p0", "10.0.0.1:80"), found("p1", "10.0.0.2:80")];
        assert_eq!(state.heard(&services[0], is(two)).len(), 1);
        assert!(names().contains(&"p0-10.0.0.8:80".to_owned()), "{:?}", names());
        assert_eq!(
            state.heard(&services[0], is(vec![found("p0", "10.0.0.1:80"), found("p1", "10.0.0.2:80")])),
            []
        );
        // Nobody is left: the pool takes none, which is not any.
        assert_eq!(state.heard(&services[0], is(vec![])), [], "what the other Service has as well goes on");
        assert_eq!(pool(), [NONE]);
        assert!(
            state.gate().admission.servers()[2].is_retired()
                && !state.gate().admission.servers()[1].is_retired()
        );
        // The same pod again is the same server, and is watched again.
        assert_eq!(state.heard(&services[0], is(vec![found("p1", "10.0.0.2:80")])), [(2, 3)]);
        assert_eq!(state.heard(&services[0], News::Trouble("away".into())), []);
        assert_eq!(pool(), [2], "what was known stays");
        // A file without the Service.
        let config: Config =
            toml::from_str("[[server]]\nname = \"fixed\"\nurl = \"http://10.0.0.9:80\"").unwrap();
        assert_eq!(state.reload(config.check().unwrap()), []);
        assert_eq!(names(), ["fixed"]);
        assert_eq!(
            state.heard(&services[0], is(vec![found("p9", "10.0.0.3:80")])),
            [],
            "it is not followed any more"
        );
    }
}
