//! One GET within hard limits: what answers is a dying program or a stranger.

use std::io::Read;
use std::net::SocketAddr;
use std::time::Duration;

use ureq::Agent;

/// To connect: pods of this node are as near as loopback.
const CONNECT: Duration = Duration::from_millis(300);
/// In all.
const TOTAL: Duration = Duration::from_secs(1);
/// The largest page that was seen of vLLM has 400 KiB (many engines, all histograms).
const MAX_BODY: u64 = 2 << 20;
/// Bytes of the head.
const MAX_HEAD: usize = 16 << 10;

/// How it went.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Response {
    /// A page.
    Page(String),
    /// It answered, with something that will not become a page soon.
    Unusable,
    /// No answer, or one that says "not yet".
    NoAnswer,
}

/// Asks; keeps no connection, as each pod goes away some day.
#[derive(Debug)]
pub(crate) struct Client(Agent);

impl Client {
    pub(crate) fn new() -> Self {
        let config = Agent::config_builder()
            .timeout_connect(Some(CONNECT))
            .timeout_global(Some(TOTAL))
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_response_header_size(MAX_HEAD)
            .http_status_as_error(false)
            .max_idle_connections(0)
            // Pods are asked directly, whatever proxy leads out of the cluster.
            .proxy(None)
            .user_agent("dualplane")
            .build();
        Self(config.into())
    }

    pub(super) fn get(&self, at: SocketAddr, path: &str) -> Response {
        self.get_url(&format!("http://{at}{path}"))
    }

    pub(crate) fn get_url(&self, url: &str) -> Response {
        let mut answer = match self.0.get(url).call() {
            Ok(a) => a,
            Err(ureq::Error::Io(_) | ureq::Error::Timeout(_) | ureq::Error::ConnectionFailed) => {
                return Response::NoAnswer;
            }
            // What is no HTTP.
            Err(_) => return Response::Unusable,
        };
        match answer.status().as_u16() {
            200 => {}
            // llama.cpp says 503 while it loads; a gateway 502 while nobody stands behind it.
            500 | 502..=504 => return Response::NoAnswer,
            _ => return Response::Unusable,
        }
        let mut body = Vec::new();
        match answer.body_mut().as_reader().take(MAX_BODY + 1).read_to_end(&mut body) {
            Err(_) => Response::NoAnswer,
            Ok(_) if body.len() as u64 > MAX_BODY => Response::Unusable,
            Ok(_) => String::from_utf8(body).map_or(Response::Unusable, Response::Page),
        }
    }
}
