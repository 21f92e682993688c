//! Checks a configuration: every value, before a port is bound, with what would be right.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use dualplane_admission::Policy;
use dualplane_admission::policy::{Pool, TenantPolicy};
use http::{HeaderName, Uri};

use crate::clients::Peer;
use crate::config::{Checked, Config, ConfigError, Target, TenantConfig, bad};
use crate::pool::Rule;
use crate::service::Service;
use crate::tenant::TenantBy;
use crate::tokenizer::Tokenizers;

/// Name of the pool of all requests that no rule takes.
const REST: &str = "all";

impl Config {
    /// Checks every value.
    ///
    /// # Errors
    /// The first that cannot be, with what would be right.
    pub fn check(self) -> Result<Checked, ConfigError> {
        let listen =
            if self.listen == crate::config::STDIN { None } else { Some(address("listen", &self.listen)?) };
        let admin = if self.admin == "none" { None } else { Some(address("admin", &self.admin)?) };
        if admin.is_some_and(|a| listen == Some(a) && a.port() != 0) {
            return bad("admin", "is the same address as listen; requests and metrics need two ports");
        }
        if self.server.is_empty() && self.service.is_empty() {
            return bad(
                "server",
                "no server; add [[server]] with url = \"http://HOST:PORT\", or [[service]] with name = \"NAMESPACE/NAME\", or use --upstream",
            );
        }
        let targets = self.targets()?;
        let services = self.services()?;
        if listen.is_some_and(|l| targets.iter().any(|t| t.authority == l.to_string())) {
            return bad("listen", "is the address of a server; the guard would send requests to itself");
        }
        let body = self.limits.body.bytes("limits.body")?;
        let buffered = self.limits.buffered.bytes("limits.buffered")?;
        if buffered < body {
            return bad(
                "limits.buffered",
                "is smaller than limits.body, so the largest body could never be read",
            );
        }
        at_least_one("limits.connections", self.limits.connections as u64)?;
        at_least_one("limits.head_seconds", self.limits.head_seconds)?;
        at_least_one("limits.body_idle_seconds", self.limits.body_idle_seconds)?;
        at_least_one("limits.body_seconds", self.limits.body_seconds)?;
        at_least_one("limits.connect_seconds", self.limits.connect_seconds)?;
        at_least_one("admission.output_tokens", self.admission.output_tokens)?;
        at_least_one("admission.unknown_requests", self.admission.unknown_requests)?;
        part("admission.kv_share", self.admission.kv_share)?;
        if !(0.0..1.0).contains(&self.admission.host_reserve) {
            return bad("admission.host_reserve", "is not a share from 0 to below 1, such as 0.1");
        }
        if !(0.0..=3600.0).contains(&self.queue.wait_seconds) {
            return bad("queue.wait_seconds", "is not a time of 0 to 3600 seconds");
        }
        let by = TenantBy::parse(&self.tenants.by)
            .ok_or(())
            .or_else(|()| bad("tenants.by", "expected key, none, header:NAME or jwt:CLAIM"))?;
        let priority = header("queue.priority_header", &self.queue.priority_header)?;
        let max_wait = header("queue.wait_header", &self.queue.wait_header)?;
        let (policy, rules) = self.policy(&targets, &services)?;
        if let Some(tls) = &self.tls {
            crate::tls::load(tls).or_else(|why| bad("tls", why))?;
        }
        if let Some(traces) = &self.traces {
            crate::traces::Collector::of(traces).or_else(|(key, why)| bad(key, why))?;
        }
        let tokenizers = Tokenizers::load(&self.tokenizer).or_else(|(key, why)| bad(key, why))?;
        Ok(Checked {
            listen,
            admin,
            targets,
            services,
            policy,
            rules,
            by,
            priority,
            max_wait,
            tokenizers,
            body,
            buffered,
            config: self,
        })
    }

    fn targets(&self) -> Result<Vec<Target>, ConfigError> {
        let mut out: Vec<Target> = Vec::new();
        for (i, said) in self.server.iter().enumerate() {
            let key = |field: &str| format!("server[{i}].{field}");
            let uri: Uri = said.url.parse().or_else(|_| {
                bad(key("url"), format!("{} is no URL such as http://127.0.0.1:8000", said.url))
            })?;
            let (scheme, port) = match uri.scheme_str() {
                Some("http") => ("http", 80),
                Some("https") => ("https", 443),
                _ => return bad(key("url"), format!("{} has no http:// or https://", said.url)),
            };
            if uri.query().is_some() {
                return bad(key("url"), "has a query; only the path of a request is put behind it");
            }
            let Some(host) = uri.host().filter(|h| !h.is_empty()) else {
                return bad(key("url"), "names no host");
            };
            let authority = format!("{host}:{}", uri.port_u16().unwrap_or(port));
            let name = said.name.clone().unwrap_or_else(|| authority.clone());
            if out.iter().any(|t| t.name == name) {
                return bad(key("name"), format!("{name} is the name of another server, too"));
            }
            some_room(&key, [said.kv_tokens, said.block_tokens, said.requests])?;
            together(&key, &said.agent, &said.container, "NAMESPACE/POD/CONTAINER")?;
            if let Some(c) = &said.container
                && c.split('/').filter(|w| !w.is_empty()).count() != 3
            {
                return bad(key("container"), "expected NAMESPACE/POD/CONTAINER");
            }
            let prefix = uri.path().trim_end_matches('/').to_owned();
            let peer = Peer::new(scheme, &authority);
            out.push(Target { name, scheme, authority, peer, prefix, service: None, said: said.clone() });
        }
        Ok(out)
    }

    fn policy(&self, targets: &[Target], services: &[Service]) -> Result<(Policy, Vec<Rule>), ConfigError> {
        let tenant = |key: &str, t: &TenantConfig| {
            if !(t.weight > 0.0 && t.weight <= 1e6) {
                return bad(format!("{key}.weight"), "is not a number above 0");
            }
            part(&format!("{key}.kv_share"), t.kv_share)?;
            Ok(TenantPolicy {
                weight: t.weight,
                running: t.running,
                waiting: t.waiting,
                kv_share: t.kv_share,
            })
        };
        let mut tenants = BTreeMap::new();
        for (name, t) in &self.tenants.named {
            tenants.insert(name.clone(), tenant(&format!("tenants.named.{name}"), t)?);
        }
        let (mut pools, mut rules) = (Vec::new(), Vec::new());
        for (i, p) in self.pool.iter().enumerate() {
            let key = |field: &str| format!("pool[{i}].{field}");
            part(&key("share"), p.share)?;
            if p.name.is_empty() || p.name == REST || pools.iter().any(|o: &Pool| o.name == p.name) {
                return bad(
                    key("name"),
                    format!("needs a name of its own; {REST} is the pool of what no rule takes"),
                );
            }
            let mut servers = Vec::new();
            for name in &p.servers {
                match targets.iter().position(|t| t.name == *name) {
                    Some(n) => servers.push(n),
                    // Its pods get numbers when they are found.
                    None if services.iter().any(|s| s.name == *name) => {}
                    None => {
                        return bad(
                            key("servers"),
                            format!("{name} is the name of no server and no service (NAMESPACE/NAME)"),
                        );
                    }
                }
            }
            pools.push(Pool { name: p.name.clone(), share: p.share, servers });
            rules.push(Rule {
                min: p.min_prompt_tokens.unwrap_or(0),
                max: p.max_prompt_tokens.unwrap_or(u64::MAX),
                images: p.images,
                adapter: p.adapter,
                models: p.models.clone(),
            });
        }
        pools.push(Pool { name: REST.into(), share: 1.0, servers: Vec::new() });
        let policy = Policy {
            shadow: self.shadow,
            max_wait: milliseconds(self.queue.wait_seconds),
            max_waiting: self.queue.requests,
            max_bytes: self.queue.bytes.bytes("queue.bytes")?,
            default_output: self.admission.output_tokens,
            worst_case: self.admission.worst_case,
            tenants,
            tenant: tenant("tenants.default", &self.tenants.default)?,
            pools,
            ..Policy::default()
        };
        Ok((policy, rules))
    }
}

/// Room of a server, where it is said.
pub(crate) fn some_room(key: &impl Fn(&str) -> String, said: [Option<u64>; 3]) -> Result<(), ConfigError> {
    if said.contains(&Some(0)) {
        return bad(
            key("kv_tokens"),
            "kv_tokens, block_tokens and requests are at least 1; leave them out where you do not know",
        );
    }
    Ok(())
}

/// Where its host RAM is read, and whose it is there.
pub(crate) fn together(
    key: &impl Fn(&str) -> String,
    agent: &Option<String>,
    container: &Option<String>,
    form: &str,
) -> Result<(), ConfigError> {
    if agent.is_some() != container.is_some() {
        return bad(key("agent"), format!("agent and container = \"{form}\" belong together"));
    }
    Ok(())
}

fn address(key: &str, text: &str) -> Result<SocketAddr, ConfigError> {
    let full = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_owned() };
    full.parse()
        .or_else(|_| bad(key, format!("{text} is no address and port, such as 0.0.0.0:8010 or :8010")))
}

fn header(key: &str, name: &str) -> Result<HeaderName, ConfigError> {
    name.parse().or_else(|_| bad(key, format!("{name:?} is no name of a header, such as x-priority")))
}

fn at_least_one(key: &str, n: u64) -> Result<(), ConfigError> {
    if n == 0 { bad(key, "must be at least 1") } else { Ok(()) }
}

fn part(key: &str, share: f64) -> Result<(), ConfigError> {
    if share > 0.0 && share <= 1.0 {
        Ok(())
    } else {
        bad(key, "is not a share above 0 and up to 1, such as 0.95")
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be 0 to 3600 s")]
fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1000.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::LISTEN;

    fn check(text: &str) -> Result<Checked, String> {
        let config: Config = toml::from_str(text).map_err(|e| e.to_string())?;
        config.check().map_err(|e| e.to_string())
    }

    #[test]
    fn a_url_is_enough_and_every_slip_is_named() {
        let c = check("server = [{ url = \"http://127.0.0.1:8000\" }]").unwrap();
        assert_eq!(
            (c.listen.unwrap().to_string().as_str(), c.targets[0].name.as_str()),
            (LISTEN, "127.0.0.1:8000")
        );
        let url = "[[server]]\nurl = \"http://a:1\"\n";
        let api = "[kubernetes]\napi = \"http://127.0.0.1:8001\"\n";
        let pool = "[[pool]]\nname = \"x\"\nservers = [\"s/llm\"]\n";
        assert_eq!(check(&format!("{api}{pool}[[service]]\nname = \"s/llm\"")).unwrap().services.len(), 1);
        for (text, says) in [
            ("", "no server"),
            ("[[server]]\nurl = \"a:1\"", "http://"),
            ("[[server]]\nurl = \"http://127.0.0.1:8010\"", "to itself"),
            (&format!("admin = \"{LISTEN}\"\n{url}"), "two ports"),
            (&format!("lisen = \"\"\n{url}"), "unknown field `lisen`"),
            (&format!("[queue]\nwait_seconds = -1\n{url}"), "queue.wait_seconds"),
            (&format!("[limits]\nbody = \"1Ti\"\n{url}"), "limits.buffered"),
            (&format!("[limits]\nbody = \"many\"\n{url}"), "limits.body"),
            (&format!("[tenants]\nby = \"jwt:\"\n{url}"), "tenants.by"),
            (&format!("[queue]\npriority_header = \"x prio\"\n{url}"), "queue.priority_header"),
            (&format!("[queue]\nwait_header = \"\"\n{url}"), "queue.wait_header"),
            (&format!("[tenants.named.a]\nweight = 0\n{url}"), "tenants.named.a.weight"),
            (&format!("[[pool]]\nname = \"x\"\nservers = [\"b\"]\n{url}"), "no server"),
            (&format!("[[pool]]\nname = \"all\"\n{url}"), "pool[0].name"),
            (&format!("{url}{url}"), "another server"),
            (&format!("[tls]\ncertificate = \"/no\"\nkey = \"/no\"\n{url}"), "tls"),
            (&format!("[admission]\nkv_share = 1.5\n{url}"), "admission.kv_share"),
            (&format!("{url}agent = \"http://x\""), "belong together"),
            (&format!("{api}[[service]]\nname = \"s/../llm\""), "service[0].name"),
            (&format!("{api}[[service]]\nname = \"s/llm\"\n[[service]]\nname = \"s/llm\""), "twice"),
            (&format!("{api}[[service]]\nname = \"s/llm\"\nagent = \"http://x\""), "belong together"),
            ("[kubernetes]\napi = \"http://10.0.0.1\"\n[[service]]\nname = \"s/llm\"", "kubernetes.api"),
            (
                &format!("{api}[[pool]]\nname = \"x\"\nservers = [\"s/b\"]\n[[service]]\nname = \"s/llm\""),
                "no service",
            ),
        ] {
            let e = check(text).unwrap_err();
            assert!(e.contains(says), "{text}: {e}");
        }
    }
}
