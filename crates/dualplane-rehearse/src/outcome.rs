//! What a rehearsal found.

use serde::Serialize;

use crate::request::Request;
use crate::scheduling::Scheduling;
use crate::settings::Settings;
use crate::vllm::Step;
use crate::watch::{Curve, Point};

/// A time that was waited, at three points of its distribution, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Spread {
    /// Half waited at most so long.
    pub p50: f64,
    /// 95 of 100.
    pub p95: f64,
    /// 99 of 100.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

impl Spread {
    fn of(mut seconds: Vec<f32>) -> Self {
        seconds.retain(|s| s.is_finite());
        seconds.sort_by(f32::total_cmp);
        let at = |share: f64| {
            let place = (seconds.len() as f64 * share).ceil() as usize;
            seconds.get(place.saturating_sub(1)).copied().map_or(0.0, f64::from)
        };
        Self { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1.0) }
    }
}

/// What a rehearsal found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Requests that came.
    pub requests: u64,
    /// Those that were answered whole.
    pub finished: u64,
    /// Those that the engine did not take: longer than the context.
    pub rejected: u64,
    /// Those whose clients hung up.
    pub cancelled: u64,
    /// Those that would wait for ever: the pool is too small for the first of them.
    pub stuck: u64,
    /// The first of them, by its place in the list.
    pub stuck_at: Option<u32>,
    /// Those that ended with an error in the midst of their answers, because the cache had no cell left (llama.cpp).
    pub broken_off: u64,
    /// Those among the finished whose answers ended early, at the end of their slot's context (llama.cpp).
    pub cut_short: u64,
    /// Seconds from the first request to the last token.
    pub seconds: f64,
    /// Steps of the engine.
    pub steps: u64,
    /// Blocks that requests can have.
    pub pool_blocks: u32,
    /// Most blocks that requests held at once.
    pub peak_blocks: u32,
    /// The same as the engine's gauge shows it: after a step, when finished requests have let go.
    pub peak_gauge_blocks: u32,
    /// When that was, in seconds.
    pub peak_at: f64,
    /// Preemptions.
    pub preemptions: u64,
    /// Requests that were preempted at least once.
    pub preempted_requests: u64,
    /// Tokens that were computed again because of that.
    pub recomputed_tokens: u64,
    /// Most requests that waited at once.
    pub longest_queue: u32,
    /// When that was, in seconds.
    pub longest_queue_at: f64,
    /// Most tokens that requests in the queue had at once.
    pub queue_tokens: u64,
    /// Blocks whose content was new when they were filled.
    pub stored_blocks: u64,
    /// Whether more came than were answered: when the last one came, many waited, and more than halfway.
    pub queue_grows: bool,
    /// Most requests that ran at once.
    pub most_running: u32,
    /// Tokens of answers that finished requests got.
    pub output_tokens: u64,
    /// Tokens that were computed, prompts and answers.
    pub computed_tokens: u64,
    /// Tokens of prompts that stood in the cache when their request was admitted.
    pub cached_tokens: u64,
    /// Share of the time in which at least one request waited.
    pub waiting_share: f64,
    /// Mean share of the pool that was held while anything ran.
    pub mean_usage: f64,
    /// Time to the first token.
    pub first_token: Spread,
    /// Time to the last token.
    pub whole: Spread,
    /// Occupancy over time.
    pub curve: Curve,
}

impl Outcome {
    /// Most of the pool that was held at once, 0 to 1.
    #[must_use]
    pub fn peak_usage(&self) -> f64 {
        f64::from(self.peak_blocks) / f64::from(self.pool_blocks.max(1))
    }
}

/// Counts while a rehearsal runs.
pub(crate) struct Tally {
    first: Vec<f32>,
    whole: Vec<f32>,
    curve: Curve,
    begin: f64,
    last: f64,
    steps: u64,
    peak: (u32, f64),
    gauge: u32,
    queue: (u32, f64),
    queue_tokens: u64,
    /// Requests that waited when half of all had come, and when the last had.
    halfway: Option<u32>,
    at_last: Option<u32>,
    running: u32,
    preemptions: u64,
    pub(crate) rejected: u64,
    pub(crate) cancelled: u64,
    pub(crate) broken_off: u64,
    cut_short: u64,
    finished: u64,
    output: u64,
    computed: u64,
    usage_seconds: f64,
    waited_seconds: f64,
    busy_seconds: f64,
}

impl Tally {
    pub(crate) fn new(requests: usize) -> Self {
        Self {
            first: Vec::with_capacity(requests),
            whole: Vec::with_capacity(requests),
            curve: Curve::new(),
            begin: 0.0,
            last: 0.0,
            steps: 0,
            peak: (0, 0.0),
            gauge: 0,
            queue: (0, 0.0),
            queue_tokens: 0,
            halfway: None,
            at_last: None,
            running: 0,
            preemptions: 0,
            rejected: 0,
            cancelled: 0,
            broken_off: 0,
            cut_short: 0,
            finished: 0,
            output: 0,
            computed: 0,
            usage_seconds: 0.0,
            waited_seconds: 0.0,
            busy_seconds: 0.0,
        }
    }

    pub(crate) fn begins(&mut self, at: f64) {
        (self.begin, self.last) = (at, at);
    }

    /// So many of all requests have come.
    pub(crate) fn come(&mut self, come: usize, all: usize, waiting: u32) {
        if self.halfway.is_none() && come * 2 >= all {
            self.halfway = Some(waiting);
        }
        if self.at_last.is_none() && come >= all {
            self.at_last = Some(waiting);
        }
    }

    fn point(&self, now: f64, scheduler: &impl Scheduling, preempted: u32) -> (f64, Point) {
        let point = Point {
            blocks: scheduler.used(),
            running: scheduler.running(),
            waiting: scheduler.waiting(),
            preempted,
        };
        (now - self.begin, point)
    }

    /// After a step was scheduled: what is held now is held while it runs.
    pub(crate) fn scheduled(&mut self, now: f64, step: &Step, scheduler: &impl Scheduling) {
        let (at, point) = self.point(now, scheduler, step.preempted);
        self.curve.see(at, point);
        if point.blocks > self.peak.0 {
            self.peak = (point.blocks, at);
        }
        if point.waiting > self.queue.0 {
            self.queue = (point.waiting, at);
        }
        self.queue_tokens = self.queue_tokens.max(scheduler.waiting_tokens());
        self.running = self.running.max(point.running);
        self.preemptions += u64::from(step.preempted);
        if !step.is_empty() {
            self.steps += 1;
            self.computed += u64::from(step.tokens);
        }
    }

    /// After what a step brought was taken in.
    pub(crate) fn updated(&mut self, now: f64, _: &Step, scheduler: &impl Scheduling) {
        self.gauge = self.gauge.max(scheduler.used());
        let passed = (now - self.last).max(0.0);
        self.last = now;
        self.busy_seconds += passed;
        self.usage_seconds += passed * f64::from(scheduler.used());
        if scheduler.waiting() > 0 {
            self.waited_seconds += passed;
        }
    }

    pub(crate) fn first_token(&mut self, number: u32, now: f64, requests: &[Request]) {
        let at = requests.get(number as usize).map_or(now, |r| r.at);
        self.first.push((now - at) as f32);
    }

    pub(crate) fn finished(&mut self, number: u32, now: f64, requests: &[Request]) {
        self.ended(number, now, requests, u32::MAX);
    }

    /// It got an answer of so many tokens, and was to get more.
    pub(crate) fn cut(&mut self, number: u32, now: f64, requests: &[Request], tokens: u32) {
        self.ended(number, now, requests, tokens);
        self.cut_short += 1;
    }

    fn ended(&mut self, number: u32, now: f64, requests: &[Request], most: u32) {
        let r = requests.get(number as usize).copied().unwrap_or_default();
        self.whole.push((now - r.at) as f32);
        self.finished += 1;
        self.output += u64::from(r.output.max(1).min(most));
    }

    pub(crate) fn outcome(
        self,
        now: f64,
        settings: &Settings,
        scheduler: &impl Scheduling,
        requests: usize,
    ) -> Outcome {
        let again = scheduler.recomputed();
        let (half, last) = (self.halfway.unwrap_or(0), self.at_last.unwrap_or(0));
        // A few that wait come by chance; a queue that grows has a share of all that came.
        let few = 4 + requests as u32 / 50;
        let busy = self.busy_seconds.max(f64::MIN_POSITIVE);
        Outcome {
            requests: requests as u64,
            finished: self.finished,
            rejected: self.rejected,
            cancelled: self.cancelled,
            stuck: scheduler.unanswered(),
            stuck_at: scheduler.head(),
            broken_off: self.broken_off,
            cut_short: self.cut_short,
            seconds: (now - self.begin).max(0.0),
            steps: self.steps,
            pool_blocks: settings.usable(),
            peak_blocks: self.peak.0,
            peak_gauge_blocks: self.gauge,
            peak_at: self.peak.1,
            preemptions: self.preemptions,
            preempted_requests: scheduler.preempted_requests(),
            recomputed_tokens: again,
            longest_queue: self.queue.0,
            longest_queue_at: self.queue.1,
            queue_tokens: self.queue_tokens,
            stored_blocks: scheduler.stored(),
            queue_grows: last > few && last > half + half / 2,
            most_running: self.running,
            output_tokens: self.output,
            computed_tokens: self.computed,
            cached_tokens: scheduler.cached(),
            waiting_share: self.waited_seconds / busy,
            mean_usage: self.usage_seconds / busy / f64::from(settings.usable().max(1)),
            first_token: Spread::of(self.first),
            whole: Spread::of(self.whole),
            curve: self.curve,
        }
    }
}
