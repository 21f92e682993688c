//! The hottest card of the node, from printouts of GPU tools and from DCGM's gauge.

use super::series::place;
use crate::evidence::Bundle;
use crate::evidence::gpu_model::hot;
use crate::evidence::metrics::Sample;
use crate::facts::Place;

/// Temperature of the chip, in degrees Celsius.
const TEMPERATURE: &str = "DCGM_FI_DEV_GPU_TEMP";

/// A card that slows down to protect itself, or is about to.
#[derive(Debug, Clone)]
pub struct Heat {
    /// What people call the card.
    pub gpu: String,
    /// Degrees Celsius.
    pub celsius: u32,
    /// Who says so.
    pub tool: &'static str,
    /// Where.
    pub place: Place,
}

/// The hottest card of this node, if one is hot. Of samples only those of the node's own exporter count; where the node is
/// not known, those of a single one.
#[must_use]
pub fn hottest(bundle: &Bundle, node: Option<&str>) -> Option<Heat> {
    let printed = bundle.printed_gpus().filter_map(|(s, g)| {
        let place = Place { file: s.file.clone(), line: Some(g.line) };
        Some(Heat { gpu: g.label(), celsius: g.hot()?, tool: s.tool, place })
    });
    let gauges = || bundle.metrics.iter().filter(|s| s.name == TEMPERATURE);
    let node = node.filter(|n| !n.is_empty());
    let several = gauges().zip(gauges().skip(1)).any(|(a, b)| host(a) != host(b));
    let here = |s: &&Sample| host(s).zip(node).map_or(!several, |(host, node)| host == node);
    let told = gauges().filter(here).filter(|s| s.value.is_finite()).filter_map(|s| {
        let celsius = hot(s.value as u32)?;
        let gpu = s.label("gpu").or_else(|| s.label("UUID")).unwrap_or("?");
        Some(Heat { gpu: gpu.to_owned(), celsius, tool: "DCGM", place: place(s) })
    });
    // Of several that are as hot, the first that was read.
    printed.chain(told).reduce(|a, b| if b.celsius > a.celsius { b } else { a })
}

fn host(s: &Sample) -> Option<&str> {
    s.label("Hostname").or_else(|| s.label("hostname"))
}
