//! What is kept of a rehearsal's steps: high-water marks, and a curve of bounded size over any length of time.

use serde::Serialize;

/// Points of a curve are at most twice this.
const POINTS: usize = 512;

/// What was seen in one part of the time; all parts are equally long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Point {
    /// Most blocks held at once.
    pub blocks: u32,
    /// Most requests that ran at once.
    pub running: u32,
    /// Most requests that waited at once.
    pub waiting: u32,
    /// Preemptions.
    pub preempted: u32,
}

impl Point {
    fn join(&mut self, other: Self) {
        self.blocks = self.blocks.max(other.blocks);
        self.running = self.running.max(other.running);
        self.waiting = self.waiting.max(other.waiting);
        self.preempted = self.preempted.saturating_add(other.preempted);
    }
}

/// A curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// Seconds of one part.
    pub seconds: f64,
    /// The parts.
    pub points: Vec<Point>,
}

impl Curve {
    pub(crate) fn new() -> Self {
        Self { seconds: 0.001, points: Vec::new() }
    }

    /// Something seen at this time, which never goes back.
    pub(crate) fn see(&mut self, at: f64, point: Point) {
        let mut index = at / self.seconds;
        while index >= (2 * POINTS) as f64 {
            self.halve();
            index = at / self.seconds;
        }
        let index = index.max(0.0) as usize;
        // What held until now holds in the parts in between.
        let kept = self.points.last().copied().unwrap_or_default();
        while self.points.len() <= index {
            self.points.push(Point { preempted: 0, ..kept });
        }
        if let Some(p) = self.points.last_mut() {
            p.join(point);
        }
    }

    fn halve(&mut self) {
        let joined = self.points.chunks(2).map(|pair| {
            let mut sum = Point::default();
            for p in pair {
                sum.join(*p);
            }
            sum
        });
        self.points = joined.collect();
        self.seconds *= 2.0;
    }

    /// The curve in this many columns.
    #[must_use]
    pub fn columns(&self, columns: usize) -> Vec<Point> {
        let len = self.points.len();
        let wide = columns.min(len).max(1);
        (0..wide)
            .map(|c| {
                let mut sum = Point::default();
                for p in self.points.iter().take((c + 1) * len / wide).skip(c * len / wide) {
                    sum.join(*p);
                }
                sum
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_stays_small_and_loses_no_peak() {
        let mut c = Curve::new();
        for i in 0..100_000_u32 {
            let blocks = if i == 77_777 { 900 } else { 5 };
            c.see(f64::from(i) * 0.01, Point { blocks, preempted: 1, ..Point::default() });
        }
        assert!(c.points.len() <= 2 * POINTS);
        assert_eq!(c.points.iter().map(|p| p.blocks).max(), Some(900));
        assert_eq!(c.points.iter().map(|p| p.preempted).sum::<u32>(), 100_000);
        let columns = c.columns(60);
        assert_eq!(columns.len(), 60);
        assert_eq!(columns.iter().position(|p| p.blocks == 900), Some(46));
        assert_eq!(columns.iter().map(|p| p.preempted).sum::<u32>(), 100_000);
    }

    #[test]
    fn what_holds_goes_on_until_something_happens() {
        let mut c = Curve::new();
        c.see(0.0, Point { waiting: 3, preempted: 2, ..Point::default() });
        c.see(0.010, Point::default());
        assert_eq!(c.points.iter().map(|p| p.waiting).collect::<Vec<_>>(), [3; 11].map(|_| 3).to_vec());
        assert_eq!(c.points.iter().map(|p| p.preempted).sum::<u32>(), 2);
    }
}
