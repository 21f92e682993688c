//! The largest load that stays safe, by trying.

use crate::clock::StepTime;
use crate::outcome::Outcome;
use crate::request::Request;
use crate::run::rehearse;
use crate::settings::Settings;

/// Halvings of a search: the answer is within 1 % of the first interval.
const HALVINGS: u32 = 7;

/// Why a load is not safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unsafe {
    /// Some requests would wait for ever.
    Stuck,
    /// Requests lose their blocks.
    Preempted,
    /// More come than are answered: the queue grows as long as they come.
    QueueGrows,
    /// Requests end with an error in the midst of their answers: the cache is full, and nothing waits for room.
    BrokenOff,
    /// Answers end early, at the end of their slot's context.
    CutShort,
    /// Some are longer than the engine takes: nothing helps them but another limit.
    Refused,
}

/// What is wrong with this outcome of a whole load, if anything. A search asks [`unsafe_by`]: who is refused or cut short is so at any rate.
#[must_use]
pub fn wrong_by(o: &Outcome) -> Option<Unsafe> {
    let refused = (o.rejected > 0).then_some(Unsafe::Refused);
    unsafe_by(o).or(refused).or((o.cut_short > 0).then_some(Unsafe::CutShort))
}

/// What is wrong with what the engine took, if anything.
#[must_use]
pub fn unsafe_by(o: &Outcome) -> Option<Unsafe> {
    if o.stuck > 0 {
        return Some(Unsafe::Stuck);
    }
    if o.broken_off > 0 {
        return Some(Unsafe::BrokenOff);
    }
    if o.preemptions > 0 {
        return Some(Unsafe::Preempted);
    }
    o.queue_grows.then_some(Unsafe::QueueGrows)
}

/// Something that was tried.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Tried {
    /// Against what was asked.
    pub factor: f64,
    /// What was wrong.
    pub unsafe_by: Option<Unsafe>,
}

/// The largest factor that was tried and found safe, below the smallest that was not.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Largest {
    /// `None`: not even the smallest that was tried.
    pub factor: Option<f64>,
    /// The smallest that was not safe, and why; `None`: all that was tried is safe.
    pub beyond: Option<Tried>,
    /// Rehearsals.
    pub tried: u32,
}

/// Looks for the largest factor within `least..=most` at which `safe` finds nothing wrong.
///
/// A scheduler promises no order: a load may be safe by luck above one that is not. So what is found is what was tried, and
/// the search comes from below.
pub fn largest(least: f64, most: f64, mut wrong: impl FnMut(f64) -> Option<Unsafe>) -> Largest {
    let mut tried = 0;
    let mut ask = |factor: f64| {
        tried += 1;
        wrong(factor)
    };
    let (mut good, mut bad) = (None, None);
    let mut factor = 1.0_f64.clamp(least, most);
    // Doubles or halves until both sides are known.
    for _ in 0..24 {
        match ask(factor) {
            None => {
                good = Some(factor);
                if bad.is_some() || factor >= most {
                    break;
                }
                factor = (factor * 2.0).min(most);
            }
            Some(why) => {
                bad = Some(Tried { factor, unsafe_by: Some(why) });
                if good.is_some() || factor <= least {
                    break;
                }
                factor = (factor / 2.0).max(least);
            }
        }
    }
    if let (Some(mut low), Some(mut high)) = (good, bad) {
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high.factor);
            match ask(middle) {
                None => low = middle,
                Some(why) => high = Tried { factor: middle, unsafe_by: Some(why) },
            }
        }
        (good, bad) = (Some(low), Some(high));
    }
    Largest { factor: good, beyond: bad, tried }
}

/// The same requests, so many times as fast one after another.
#[must_use]
pub fn faster(requests: &[Request], factor: f64) -> Vec<Request> {
    let first = requests.first().map_or(0.0, |r| r.at);
    requests.iter().map(|r| Request { at: first + (r.at - first) / factor.max(1e-9), ..*r }).collect()
}

/// The same requests with prompts so many times as long, as far as the engine takes them.
#[must_use]
pub fn longer(requests: &[Request], factor: f64, max_model_len: u32) -> Vec<Request> {
    let scale = |tokens: u32| (f64::from(tokens) * factor).round() as u32;
    let longer = |r: &Request| {
        let room = max_model_len.saturating_sub(r.output).max(r.input.min(max_model_len));
        let prefix = r.prefix.map(|p| crate::Prefix { tokens: scale(p.tokens), ..p });
        Request { input: scale(r.input).clamp(1, room.max(1)), prefix, ..*r }
    };
    requests.iter().map(longer).collect()
}

/// The largest rate, as a factor of the requests' own.
#[must_use]
pub fn rate(settings: &Settings, requests: &[Request], time: &StepTime) -> Largest {
    largest(1.0 / 64.0, 64.0, |f| unsafe_by(&rehearse(settings, &faster(requests, f), time, |_, _, _| {})))
}

/// The longest prompts, as a factor of the requests' own.
#[must_use]
pub fn length(settings: &Settings, requests: &[Request], time: &StepTime) -> Largest {
    let longest = requests.iter().map(|r| r.input).max().unwrap_or(1).max(1);
    let most = (f64::from(settings.max_model_len) / f64::from(longest)).clamp(1.0, 64.0);
    largest(1.0 / 64.0, most, |f| {
        unsafe_by(&rehearse(settings, &longer(requests, f, settings.max_model_len), time, |_, _, _| {}))
    })
}

/// The most requests at once (`--max-num-seqs`, slots) at which nobody is preempted or broken off, up to what is set; `None`: not even one.
#[must_use]
pub fn sequences(settings: &Settings, requests: &[Request], time: &StepTime) -> Option<u32> {
    let holds = |n: u32| {
        let s = Settings { max_num_seqs: n, ..settings.clone() };
        let o = rehearse(&s, requests, time, |_, _, _| {});
        o.preemptions == 0 && o.broken_off == 0 && o.stuck == 0
    };
    let (mut low, mut high) = (0, settings.max_num_seqs.saturating_add(1));
    while high - low > 1 {
        let middle = low.midpoint(high);
        if holds(middle) { low = middle } else { high = middle }
    }
    (low > 0).then_some(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edge_is_found_from_both_sides() {
        for edge in [0.3, 1.0, 5.5] {
            let found = largest(1.0 / 64.0, 64.0, |f| (f > edge).then_some(Unsafe::Preempted));
            let (good, bad) = (found.factor.unwrap(), found.beyond.unwrap().factor);
            assert!(good <= edge && edge < bad && bad - good < 0.05 * edge, "{found:?}");
        }
        assert_eq!(largest(0.1, 4.0, |_| None).factor, Some(4.0));
        let none = largest(0.1, 4.0, |_| Some(Unsafe::Stuck));
        assert_eq!((none.factor, none.beyond.map(|b| b.factor)), (None, Some(0.1)));
    }

    const TIME: StepTime = StepTime { base: 0.02, token: 1e-5, request: 0.0, context: 0.0 };

    fn load(n: u32, every: f64) -> Vec<Request> {
        (0..n)
            .map(|i| Request { at: f64::from(i) * every, input: 100, output: 60, ..Request::default() })
            .collect()
    }

    #[test]
    fn a_smaller_pool_takes_a_smaller_rate() {
        let requests = load(200, 0.2);
        let of =
            |blocks| rate(&Settings { max_num_seqs: 64, ..Settings::plain(blocks, 16) }, &requests, &TIME);
        let (small, large) = (of(60), of(400));
        assert!(small.factor.unwrap() < large.factor.unwrap(), "{small:?} {large:?}");
        assert_eq!(small.beyond.unwrap().unsafe_by, Some(Unsafe::Preempted));
    }

    #[test]
    fn as_many_sequences_as_the_pool_holds_are_not_preempted() {
        // Each takes 10 blocks; 105 usable ones hold ten of them.
        let s = Settings { max_num_seqs: 64, ..Settings::plain(106, 16) };
        let n = sequences(&s, &load(100, 0.0), &TIME).unwrap();
        assert!((10..=11).contains(&n), "{n}");
    }
}
