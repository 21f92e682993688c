//! Leaves out points that say nothing new: a value that stays the same is told now and then, and where it ends.

/// A point: milliseconds since 1970, value.
use dualplane_base::order::Order as _;

pub(super) type Point = (i64, f64);

/// Between two points of a value that stays: Prometheus' usual interval.
const STILL_MS: i64 = 15_000;

/// One series. With `every` a value that moves is told once in so many milliseconds.
pub(super) fn one(points: Vec<Point>, every: i64) -> Vec<Point> {
    let rows = points.into_iter().map(|(at, v)| (at, vec![Some(v)])).collect();
    rows_of(rows, every).into_iter().filter_map(|(at, v)| Some((at, v.first().copied()??))).collect()
}

/// Several series that are written together: at a time that one has, all have a point that had one.
pub(super) fn rows(rows: Vec<(i64, Vec<Option<f64>>)>, every: i64) -> Vec<Vec<Point>> {
    let width = rows.first().map_or(0, |(_, r)| r.len());
    let kept = rows_of(rows, every);
    let column = |i: usize| {
        kept.iter().filter_map(|(at, r)| Some((*at, r.get(i).copied().flatten()?))).collect::<Vec<Point>>()
    };
    (0..width).map(column).collect()
}

fn rows_of(mut rows: Vec<(i64, Vec<Option<f64>>)>, every: i64) -> Vec<(i64, Vec<Option<f64>>)> {
    rows.order_by_key(|(at, _)| *at);
    // Of several tellings of one time the last counts.
    rows.reverse();
    rows.dedup_by_key(|(at, _)| *at);
    rows.reverse();
    let mut out: Vec<(i64, Vec<Option<f64>>)> = Vec::new();
    // The last one that was left out: where a value moves, it is told until when it stood.
    let mut before: Option<(i64, Vec<Option<f64>>)> = None;
    for row in rows {
        let Some((at, last)) = out.last() else {
            out.push(row);
            continue;
        };
        let (since, same) = (row.0 - at, row.1 == *last);
        if since >= STILL_MS || (!same && since >= every) {
            if !same && every == 0 {
                out.extend(before.take());
            }
            before = None;
            out.push(row);
        } else {
            before = Some(row);
        }
    }
    out.extend(before);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_is_told_now_and_then_and_to_its_end() {
        let steady: Vec<Point> = (0..100).map(|s| (s * 1000, if s < 50 { 7.0 } else { 9.0 })).collect();
        let got = one(steady, 0);
        let at: Vec<i64> = got.iter().map(|p| p.0 / 1000).collect();
        assert_eq!(at, [0, 15, 30, 45, 49, 50, 65, 80, 95, 99]);
        let moving: Vec<Point> = (0..20).map(|s| (s * 1000, s as f64)).collect();
        assert_eq!(one(moving.clone(), 0), moving);
        let at: Vec<i64> = one(moving, 5000).iter().map(|p| p.0 / 1000).collect();
        assert_eq!(at, [0, 5, 10, 15, 19]);
        assert_eq!(one(vec![(5, 1.0), (5, 2.0), (3, 0.0)], 0), [(3, 0.0), (5, 2.0)]);
        assert!(one(Vec::new(), 0).is_empty() && rows(Vec::new(), 0).is_empty());
        let together = rows((0..4).map(|s| (s, vec![Some(s as f64), Some(1.0), None])).collect(), 0);
        assert_eq!(together.iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 0]);
    }
}
