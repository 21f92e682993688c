//! Which servers there are: those of a cluster come and go, and what runs on one that left is counted to its end.

use crate::Ms;
use crate::admission::Admission;
use crate::server::Server;

impl Admission {
    /// Adds a server; its number is the answer: that of one that is retired and over, or the next. Servers of a cluster come and
    /// go for months.
    pub fn add_server(&mut self, now: Ms, server: Server) -> usize {
        match self.servers.iter_mut().enumerate().find(|(_, s)| s.is_over(now)) {
            Some((number, place)) => {
                *place = server;
                number
            }
            None => {
                self.servers.push(server);
                self.servers.len() - 1
            }
        }
    }

    /// A server is no longer one: it gets nothing more, counts in no sum, and what it works on is counted to its end.
    pub fn retire(&mut self, now: Ms, server: usize) {
        if let Some(s) = self.servers.get_mut(server) {
            s.retire(now);
        }
    }

    /// It is one again: down until it answers.
    pub fn bring_back(&mut self, server: usize) {
        if let Some(s) = self.servers.get_mut(server) {
            s.bring_back();
        }
    }
}
