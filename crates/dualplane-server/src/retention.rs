//! What is too old goes, with its bundle. By a clock that jumped nothing is old: a jump of a hundred days would end everything.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dualplane_incidents::Time;
use tokio::time::sleep;

use crate::app::{App, now};
use crate::clock::Drift;
use crate::ended;

/// Between two rounds, and deaths of one statement.
const SWEEP: Duration = Duration::from_secs(600);
const SWEPT: usize = 500;
/// Clocks are set by this much, and machines sleep.
const JUMP_MS: i64 = 6 * 3_600_000;
/// A clock that stays where it jumped is right.
const BELIEVED: Duration = Duration::from_secs(24 * 3600);
const DAY_MS: i64 = 86_400_000;

/// Whether this machine's clock goes on as time does.
#[derive(Debug)]
struct Pace {
    drift: Drift,
    /// Since when it has been ahead.
    ahead: Option<Instant>,
}

impl Pace {
    fn new(wall: Time, at: Instant) -> Self {
        Self { drift: Drift::new(wall, at), ahead: None }
    }

    /// `None` where it can be believed, else by how many milliseconds it has jumped ahead.
    fn jumped(&mut self, wall: Time, at: Instant) -> Option<i64> {
        let jump = self.drift.ms(wall, at);
        let long_ago = self.ahead.is_some_and(|since| at.saturating_duration_since(since) >= BELIEVED);
        if jump <= JUMP_MS || long_ago {
            // Small steps, and what was set back, are followed: they make nothing old.
            *self = Self::new(wall, at);
            return None;
        }
        self.ahead.get_or_insert(at);
        Some(jump)
    }
}

/// Removes what is too old, as long as the server runs.
pub async fn sweep(app: Arc<App>) {
    let mut pace = Pace::new(now(), Instant::now());
    loop {
        app.bundles.sweep();
        let wall = now();
        match pace.jumped(wall, Instant::now()) {
            None => once(&app, wall).await,
            Some(by) => (app.say)(&format!(
                "the clock jumped ahead by {}: nothing is removed until it is set right, or has stayed there for a day",
                dualplane_base::time::span(by)
            )),
        }
        sleep(SWEEP).await;
    }
}

async fn once(app: &App, wall: Time) {
    // A store that is away is swept the next time.
    let _ = ended::forget(&*app.store, wall.ms() / 1000).await;
    let before = Time::from_ms(wall.ms() - i64::from(app.keep_days) * DAY_MS);
    loop {
        match app.store.forget(before, SWEPT).await {
            Ok(ids) => {
                for id in &ids {
                    if let Err(e) = app.bundles.remove(id).await {
                        (app.say)(&format!("the bundle of {id} was not removed: {e}"));
                    }
                }
                if ids.len() < SWEPT {
                    return;
                }
            }
            Err(e) => {
                (app.say)(&format!("what is older than {} days stays for now: {e}", app.keep_days));
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_jumped_is_believed_after_a_day_and_one_that_is_right_again_at_once() {
        let (start, at) = (Time::from_ms(1_000_000_000_000), Instant::now());
        let later = |ms: i64| Time::from_ms(start.ms() + ms);
        let after = |s: u64| at + Duration::from_secs(s);
        let mut p = Pace::new(start, at);
        assert_eq!(p.jumped(later(600_000), after(600)), None);
        // A hundred days ahead, all at once.
        let far = 100 * DAY_MS;
        assert_eq!(p.jumped(later(far + 1_200_000), after(1200)), Some(far));
        assert_eq!(p.jumped(later(far + 1_800_000), after(1800)), Some(far), "it does not get used to it");
        assert_eq!(p.jumped(later(2_400_000), after(2400)), None, "it was set right");
        // It jumps and stays.
        assert_eq!(p.jumped(later(far + 3_000_000), after(3000)), Some(far));
        let day = 24 * 3600;
        assert_eq!(p.jumped(later(far + (3600 + day) * 1000), after(3600 + day as u64)), None);
        assert_eq!(p.jumped(later(far + (4200 + day) * 1000), after(4200 + day as u64)), None);
        // Back by a year: nothing is old by it, and then it goes on from there.
        assert_eq!(p.jumped(later(-365 * DAY_MS), after(4300 + day as u64)), None);
        assert_eq!(p.jumped(later(-365 * DAY_MS + 600_000), after(4900 + day as u64)), None);
        assert!(p.jumped(later(0), after(5500 + day as u64)).is_some());
    }
}
