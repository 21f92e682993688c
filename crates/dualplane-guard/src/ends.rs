//! What a server's ends were: the kernel's counter of its group and the agent of its node each say it in their time.
//!
//! A server's end is noticed by a refused connection or a broken answer; the counter may have grown a moment before, and
//! the agent judges some seconds later. So each keeps when it was first seen, and names the end that it is near to, once.

use dualplane_admission::Ms;
use dualplane_base::Class;

/// For so long an end waits for the agent's verdict: it reads the logs first, on a node that may be busy.
const WAIT: Ms = 60_000;
/// So long before an end a process was killed of which the end came: an API server that outlives its engine gives up within
/// half a minute.
const BEFORE: Ms = 30_000;
/// So long before an answer that broke off, where the server still takes connections.
const JUST: Ms = 3_000;

/// What names ends of one server.
#[derive(Debug, Default)]
pub struct Ends {
    /// OOM kills of its group, as last read.
    kills: Option<u64>,
    /// When they grew, where no end was named by it.
    killed: Option<Ms>,
    /// Whether the agent's page was read, and the newest verdict on it that was taken, by its time on the wall.
    heard: bool,
    taken: Option<i64>,
    /// A verdict by which no end was named, and when it was first seen.
    judged: Option<(Ms, Class)>,
    /// An end that has no name yet, since when.
    open: Option<Ms>,
    /// What the last end was.
    last: Option<Class>,
}

impl Ends {
    /// The counter of its group. It begins again with each container.
    pub fn hear_kills(&mut self, now: Ms, kills: u64) {
        if self.kills.replace(kills).is_some_and(|before| kills > before) {
            self.killed = Some(now);
        }
    }

    /// The last incident of its container on the agent's page: when it died, and its class once it is judged. What was there
    /// at the first look is of an earlier end.
    pub fn hear_agent(&mut self, now: Ms, incident: Option<(i64, Option<Class>)>) {
        let first = !std::mem::replace(&mut self.heard, true);
        let Some((at, class)) = incident.filter(|(at, _)| self.taken.is_none_or(|taken| *at > taken)) else {
            return;
        };
        if first {
            self.taken = Some(at);
        } else if let Some(class) = class {
            self.taken = Some(at);
            self.judged = Some((now, class));
        }
    }

    /// Whether the kernel has just killed in its group: then an answer that broke off is an end.
    pub fn just_killed(&self, now: Ms) -> bool {
        self.killed.is_some_and(|at| now.saturating_sub(at) <= JUST)
    }

    /// It is over. Gives the name of an earlier end that is to be counted without one.
    pub fn end(&mut self, now: Ms) -> Option<Class> {
        let before = self.open.replace(now).map(|_| Class::Unknown);
        self.last = before.or(self.last);
        before
    }

    /// The class of its end, once it is known or will not be; each end is told once. With an `agent`, its verdict is waited
    /// for: the counter grows by the node's OOM killer as by the group's own.
    pub fn settle(&mut self, now: Ms, agent: bool) -> Option<Class> {
        let since = self.open?;
        let killed = self.killed.is_some_and(|at| at.saturating_add(BEFORE) >= since);
        let judged = self.judged.filter(|(at, _)| at.saturating_add(BEFORE) >= since).map(|(_, class)| class);
        let late = !agent || now.saturating_sub(since) >= WAIT;
        let class = match judged {
            Some(class) => class,
            None if !late => return None,
            None if killed => Class::HostOomKilled,
            None => Class::Unknown,
        };
        (self.open, self.killed, self.judged, self.last) = (None, None, None, Some(class));
        Some(class)
    }

    /// What is known of its last end now: a kernel kill before the agent's verdict.
    pub fn last(&self) -> Option<Class> {
        match self.open {
            Some(since) if self.killed.is_some_and(|at| at.saturating_add(BEFORE) >= since) => {
                Some(Class::HostOomKilled)
            }
            Some(_) => Some(Class::Unknown),
            None => self.last,
        }
    }

    /// Whether an end waits for its name.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_kill_that_was_read_before_the_end_was_noticed_names_it() {
        let mut e = Ends::default();
        e.hear_kills(0, 4);
        e.hear_kills(1_000, 5);
        assert!(e.just_killed(1_100));
        assert_eq!(e.end(1_200), None);
        assert_eq!(e.settle(1_200, false), Some(Class::HostOomKilled));
        // The next end is another's.
        e.end(9_000);
        assert_eq!((e.settle(9_000, false), e.last()), (Some(Class::Unknown), Some(Class::Unknown)));
    }

    #[test]
    fn a_kill_that_it_outlived_names_no_end() {
        let mut e = Ends::default();
        e.hear_kills(0, 0);
        e.hear_kills(1_000, 1);
        e.end(1_000 + BEFORE + 1);
        assert_eq!(e.settle(40_000, false), Some(Class::Unknown));
    }

    #[test]
    fn a_counter_that_begins_again_is_no_kill() {
        let mut e = Ends::default();
        e.hear_kills(0, 7);
        e.hear_kills(1_000, 0);
        assert!(!e.just_killed(1_000));
        e.hear_kills(2_000, 1);
        assert!(e.just_killed(2_000));
    }

    #[test]
    fn the_agent_names_it_before_the_counter_does() {
        let mut e = Ends::default();
        e.hear_kills(0, 0);
        e.hear_agent(0, Some((100, Some(Class::CudaOomLoad))));
        e.hear_kills(1_000, 1);
        e.end(1_500);
        assert_eq!((e.settle(1_500, true), e.last()), (None, Some(Class::HostOomKilled)));
        e.hear_agent(2_000, Some((100, Some(Class::CudaOomLoad))));
        e.hear_agent(3_000, Some((1_900, None)));
        assert_eq!(e.settle(3_000, true), None, "kept and not judged yet");
        e.hear_agent(6_000, Some((1_900, Some(Class::HostNodeOom))));
        assert_eq!((e.settle(6_000, true), e.is_open()), (Some(Class::HostNodeOom), false));
        assert_eq!(e.settle(99_000, true), None);
    }

    #[test]
    fn an_agent_that_says_nothing_is_not_waited_for_without_end() {
        let mut e = Ends::default();
        e.hear_agent(0, None);
        e.end(0);
        assert_eq!((e.settle(WAIT - 1, true), e.settle(WAIT, true)), (None, Some(Class::Unknown)));
        e.hear_agent(WAIT + 1, Some((5, Some(Class::CudaOomRuntime))));
        e.end(WAIT + 2 + BEFORE);
        assert_eq!(e.settle(3 * WAIT + BEFORE, true), Some(Class::Unknown), "that verdict was of the first");
    }

    #[derive(Debug, Clone)]
    enum Step {
        Kills(u64),
        Agent(Option<(i64, bool)>),
        End,
        Settle,
    }

    fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
        let step = prop_oneof![
            (0_u64..4).prop_map(Step::Kills),
            proptest::option::of((0_i64..6, any::<bool>())).prop_map(Step::Agent),
            Just(Step::End),
            Just(Step::Settle),
        ];
        proptest::collection::vec((0_u64..20_000, step), 0..60)
    }

    proptest! {
        /// Each end is told once, whatever comes when; a class other than `unknown` needs a growth or a new verdict of its own.
        #[test]
        fn each_end_is_told_once_and_each_proof_serves_once(steps in steps(), agent in any::<bool>()) {
            let (mut e, mut now, mut ends, mut told, mut named) = (Ends::default(), 0, 0, 0, 0);
            let (mut kills, mut proofs, mut highest, mut heard) = (None, 0, None, false);
            for (later, step) in steps {
                now += later;
                match step {
                    Step::Kills(n) => {
                        proofs += usize::from(kills.replace(n).is_some_and(|k| n > k));
                        e.hear_kills(now, n);
                    }
                    Step::Agent(said) => {
                        if let Some((at, judged)) = said && highest.is_none_or(|h| at > h) && (judged || !heard) {
                            highest = Some(at);
                            proofs += usize::from(heard);
                        }
                        heard = true;
                        e.hear_agent(now, said.map(|(at, judged)| (at, judged.then_some(Class::CudaOomRuntime))));
                    }
                    Step::End => {
                        ends += 1;
                        told += usize::from(e.end(now).is_some());
                    }
                    Step::Settle => {}
                }
                if let Some(class) = e.settle(now, agent) {
                    told += 1;
                    named += usize::from(class != Class::Unknown);
                }
                prop_assert_eq!(ends, told + usize::from(e.is_open()));
                prop_assert!(named <= proofs, "{} ends named by {} proofs", named, proofs);
            }
            now += WAIT;
            told += usize::from(e.settle(now, agent).is_some());
            prop_assert_eq!(ends, told);
        }
    }
}
