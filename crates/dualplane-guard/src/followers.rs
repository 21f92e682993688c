//! Threads that follow Services, one for each of the configuration, and what becomes of what they hear.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use dualplane_base::text::counted;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::discover::{self, News};
use crate::service::Service;
use crate::state::State;
use crate::watch;

/// Those that run.
pub(crate) struct Followers {
    state: Arc<State>,
    tell: UnboundedSender<(Service, News)>,
    /// Whoever drops the sender ends the thread.
    running: Vec<(Service, Sender<()>)>,
}

impl Followers {
    /// None yet. What they will hear is taken in by a task of this runtime.
    pub(crate) fn new(state: &Arc<State>, say: &Arc<dyn Fn(&str) + Send + Sync>) -> Self {
        let (tell, mut told) = unbounded_channel::<(Service, News)>();
        let (of, say) = (Arc::clone(state), Arc::clone(say));
        tokio::spawn(async move {
            while let Some((service, news)) = told.recv().await {
                say(&format!("{}: {}", service.name, words(&news)));
                for (server, term) in of.heard(&service, news) {
                    tokio::spawn(watch::watch(Arc::clone(&of), server, term));
                }
            }
        });
        Self { state: Arc::clone(state), tell, running: Vec::new() }
    }

    /// Follows the Services of the configuration of now, and no others.
    pub(crate) fn follow(&mut self) -> io::Result<()> {
        let services = self.state.config().services.clone();
        self.running.retain(|(r, _)| services.iter().any(|s| s.is(r)));
        for service in services {
            if self.running.iter().any(|(s, _)| s.name == service.name) {
                continue;
            }
            let (over, ends) = channel();
            let (tell, of) = (self.tell.clone(), service.clone());
            // It ends with the process: it waits for an answer nearly always.
            std::thread::Builder::new().name("service".into()).spawn(move || {
                discover::follow(&of.wanted, &ends, |news| tell.send((of.clone(), news)).is_ok());
            })?;
            self.running.push((service, over));
        }
        Ok(())
    }
}

fn words(news: &News) -> String {
    match news {
        News::Trouble(why) => format!("{why}; what was known stays"),
        News::Is(behind) => {
            let names: Vec<&str> = behind.servers.iter().map(|f| f.name.as_str()).take(10).collect();
            let more = behind.servers.len().saturating_sub(names.len());
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let names =
                if names.is_empty() { String::new() } else { format!(": {}{more}", names.join(", ")) };
            let idle = if behind.idle > 0 { format!(", {} not ready", behind.idle) } else { String::new() };
            let out = match behind.left_out {
                0 => String::new(),
                n => format!("; {} without the port that was asked for, or too many", counted(n, "endpoint")),
            };
            format!("{}{names}{idle}{out}", counted(behind.servers.len(), "server"))
        }
    }
}
