//! Locust's `PREFIX_stats.csv`: its last row, `Aggregated`, is all of it.

use dualplane_gate::document::{Failed, Requests, Throughput};

use super::{Results, distribution};

pub(super) fn read(text: &str) -> Option<Results> {
    let mut lines = text.lines();
    let heads: Vec<&str> = lines.next()?.split(',').map(|h| h.trim_matches('"')).collect();
    heads.iter().position(|h| *h == "Request Count")?;
    let row = lines.find(|l| l.starts_with(",Aggregated,") || l.starts_with("\"\",\"Aggregated\","))?;
    let fields: Vec<&str> = row.split(',').map(|f| f.trim_matches('"')).collect();
    let of = |name: &str| -> Option<f64> {
        let at = heads.iter().position(|h| *h == name)?;
        fields.get(at)?.parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0)
    };
    let (n, bad) = (of("Request Count")? as u64, of("Failure Count").unwrap_or(0.0) as u64);
    let seconds = |name: &str| of(name).map(|ms| ms / 1e3);
    let points = ["50%", "90%", "95%", "99%", "100%"].map(seconds);
    let rate = of("Requests/s");
    let failed = if bad == 0 { Vec::new() } else { vec![Failed { reason: "error".into(), count: bad }] };
    Some(Results {
        tool: "locust".into(),
        seconds: rate.filter(|r| *r > 0.0).map(|r| n as f64 / r),
        e2e: distribution(n, seconds("Average Response Time"), points),
        requests: Some(Requests {
            sent: n,
            succeeded: n.saturating_sub(bad),
            good: None,
            failed,
            cancelled: 0,
        }),
        throughput: Some(Throughput {
            requests_per_second: rate.map(|r| (r - of("Failures/s").unwrap_or(0.0)).max(0.0)),
            ..Throughput::default()
        }),
        ..Results::default()
    })
}
