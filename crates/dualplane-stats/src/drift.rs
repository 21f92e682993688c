//! Whether memory grows: the slope of its lower edge, an interval that heeds noise which remembers, and a judgement.
//!
//! What a server holds goes up and down: garbage is collected, buffers fill, load comes and goes. A leak is what does not come
//! back, so the lower edge is judged: the time is cut into blocks, each at least as long as the longest tooth of a saw, and the
//! minimum of each stands for it. The slope through these is the median of the slopes of all pairs (Theil and Sen), the
//! interval that of Sen with Kendall's variance (of few minima, Student's around the line of least squares), made wider where what
//! is left over remembers its past, and wider still where the load moved along with time: then a slope cannot be told from load.
//! A start that settles is cut off and the rest judged.

use crate::rank::{mad, median, quantile, sorted};
use crate::student::{normal_quantile, t_quantile};

/// Blocks of a series without teeth.
const BLOCKS: usize = 36;
/// Garbage that is not collected at once shows no tooth, and nobody knows how long one is: coarser blocks are tried as well, and
/// those are taken whose edge is the straightest. That asks for no direction.
const COUNTS: [usize; 6] = [6, 8, 10, 14, 18, 26];
/// Below so many values the interval is Student's around the line of least squares: ranks of so few tell nothing at its
/// confidence, and minima of long blocks scatter much as the normal distribution does.
const FEW: usize = 12;
/// Where coarser blocks were chosen and no tooth says why, the interval misses so many times less often than it was asked to: noise
/// that remembers for minutes is straight by chance in one of them.
const CHOSEN: f64 = 100.0;
/// Fewer values than these show no trend: of 5 in order, 1 in 120 is in order by chance.
const LEAST: usize = 6;
/// A drop counts as the end of a tooth from this many deviations of the steps between samples on,
const TOOTH_DEVIATIONS: f64 = 6.0;
/// and from this share of all that the series moves on.
const TOOTH_SHARE: f64 = 0.2;
/// A median distance of normal values, in deviations.
const NORMAL_MAD: f64 = 1.4826;
/// A later half that rises less than this share of the whole settles.
const SETTLES: f64 = 0.5;
/// The growth stands out of what scatters around it by this many deviations.
const OUT_OF_NOISE: f64 = 2.0;
/// What is left may remember: more than this says that nothing can be told.
const MEMORY: f64 = 0.9;
/// Memory of fewer values is not told from chance; teeth, which make them few, have none.
const MEMORY_FROM: usize = 12;
/// From this factor on the interval says that load and time are tied.
const TIED: f64 = 1.5;
/// A later half that rises less than the earlier one by this many deviations settles.
const DECELERATES: f64 = 1.5;
/// From this factor on they cannot be told apart, however straight the line.
const NOT_TOLD: f64 = 5.0;
/// Memory follows load within so many seconds.
const LATE: [f64; 8] = [0.0, 15.0, 30.0, 60.0, 90.0, 120.0, 240.0, 600.0];
/// Garbage is collected at once: within so many samples.
const SHARP: usize = 3;
/// Shares of the time that may be a start. More is not cut off: nothing of the rest could be told.
const CUTS: [f64; 3] = [0.0, 0.25, 0.5];
/// The beginning is this part of what is looked at,
const HEAD: usize = 20;
/// and a start where it stands so many ranges of the rest outside of it.
const FAR: f64 = 2.0;
/// A series that is shorter than so many hours must show as much growth as one that is not.
const SHORTEST: f64 = 0.5;
const HOUR: f64 = 3600.0;

/// One sample of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Seconds on any clock.
    pub seconds: f64,
    /// What was held.
    pub value: f64,
    /// What the server was doing then: requests that ran, say; none where it is not known or was constant.
    pub load: Option<f64>,
}

/// What to ask for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ask {
    /// Of the interval, 0.995 by default: of 100 clean series, fewer than one is to look as if it grew.
    pub confidence: f64,
    /// Growth below this an hour is not called so; in the unit of the values.
    pub least_per_hour: f64,
}

impl Default for Ask {
    /// 16 MiB an hour are 0.4 GiB a day: less than that outlives no release.
    fn default() -> Self {
        Self { confidence: 0.995, least_per_hour: 16.0 * 1024.0 * 1024.0 }
    }
}

/// Why a slope is not called growth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Because {
    /// It is growth.
    Grows,
    /// The interval holds 0, or growth does not stand out of the noise.
    Noise,
    /// It rose and settles.
    Settles,
    /// It rises less than what was asked for.
    Small,
    /// The load rose along with it.
    Load,
    /// It goes up and down more slowly than the series lasts.
    SlowTeeth,
}

/// The slope of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// By the hour.
    pub per_hour: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Its confidence.
    pub confidence: f64,
    /// Seconds of what was judged: a start that settles is not in it.
    pub seconds: f64,
    /// Samples of that.
    pub samples: usize,
    /// The judgement.
    pub because: Because,
}

impl Drift {
    /// It grows steadily, and not by chance, load or start.
    #[must_use]
    pub fn grows(&self) -> bool {
        self.because == Because::Grows
    }
}

/// Judges a series in any order; none where it is too short to say anything.
#[must_use]
pub fn drift(series: &[Sample], ask: &Ask) -> Option<Drift> {
    let mut all: Vec<Sample> =
        series.iter().copied().filter(|s| s.seconds.is_finite() && s.value.is_finite()).collect();
    all.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    all.dedup_by(|a, b| a.seconds == b.seconds);
    let mut said = None;
    for (i, cut) in CUTS.iter().enumerate() {
        let rest = after(&all, *cut);
        let next = CUTS.get(i + 1);
        if next.is_some_and(|next| starts(rest, after(&all, *next))) {
            continue;
        }
        said = judge(rest, ask).or(said);
        if said.is_none_or(|d| d.because != Because::Settles) {
            break;
        }
    }
    said
}

/// Samples after a share of the time.
fn after(all: &[Sample], share: f64) -> &[Sample] {
    let (Some(first), Some(last)) = (all.first(), all.last()) else { return all };
    let from = first.seconds + (last.seconds - first.seconds) * share;
    all.get(all.partition_point(|s| s.seconds < from)..).unwrap_or_default()
}

/// The beginning of a series stands far outside of all that its rest does.
fn starts(all: &[Sample], rest: &[Sample]) -> bool {
    let head = all.get(..(all.len() / HEAD).max(1)).unwrap_or_default();
    let values = sorted(rest.iter().map(|s| s.value));
    let (Some(head), Some(low), Some(high)) =
        (median(head.iter().map(|s| s.value)), quantile(&values, 0.02), quantile(&values, 0.98))
    else {
        return false;
    };
    let far = FAR * (high - low);
    head < low - far || head > high + far
}

fn judge(all: &[Sample], ask: &Ask) -> Option<Drift> {
    let (first, last) = (all.first()?, all.last()?);
    let seconds = last.seconds - first.seconds;
    if all.len() < LEAST || seconds <= 0.0 {
        return None;
    }
    let load = load_of(all);
    let without =
        |i: usize| load.as_ref().map_or(0.0, |l| l.loads.get(i).map_or(0.0, |x| l.takes * (x - l.mean)));
    let flat: Vec<(f64, f64)> =
        all.iter().enumerate().map(|(i, s)| (s.seconds, s.value - without(i))).collect();
    let tooth = longest_tooth(&flat);
    let slow = tooth * (LEAST as f64) > seconds;
    let most = if tooth > 0.0 { ((seconds / tooth) as usize).clamp(LEAST, BLOCKS) } else { BLOCKS };
    let blocks = COUNTS.into_iter().filter(|n| *n < most).chain([most]);
    // After each collection at once the floor is seen itself, whatever lies between.
    let floors = (tooth > 0.0).then(|| floors(&flat));
    let chosen = |n: usize| if n == most || tooth > 0.0 { 1.0 } else { CHOSEN };
    let blocks = blocks.map(|n| (edge(&flat, n.min(all.len())), chosen(n)));
    let lines = blocks.chain(floors.map(|f| (f, 1.0)));
    let lines = lines.filter_map(|(edge, chosen)| Line::of(edge, ask.confidence, chosen));
    let line = lines.min_by(|a, b| (a.high - a.low).total_cmp(&(b.high - b.low)))?;
    let Line { edge, per_hour, left, shown, .. } = &line;
    let (per_hour, shown) = (*per_hour, *shown);
    let wide = load.as_ref().map_or(1.0, Load::wider);
    let low = per_hour - (per_hour - line.low) * wide;
    let high = per_hour + (line.high - per_hour) * wide;
    let grown = per_hour * seconds / HOUR;
    let noise = mad(left).unwrap_or_default() * NORMAL_MAD;
    let halves = halves(edge);
    let because = if per_hour > 0.0 && wide > NOT_TOLD {
        Because::Load
    } else if per_hour > 0.0 && halves.is_some_and(|h| h.decelerates()) {
        Because::Settles
    } else if !(shown && low > 0.0 && grown > OUT_OF_NOISE * noise) {
        if wide > TIED && per_hour > 0.0 { Because::Load } else { Because::Noise }
    } else if halves.is_some_and(|h| h.after < per_hour * SETTLES) {
        Because::Settles
    } else if slow {
        Because::SlowTeeth
    } else if per_hour < ask.least_per_hour || grown < ask.least_per_hour * SHORTEST {
        Because::Small
    } else {
        Because::Grows
    };
    Some(Drift { per_hour, low, high, confidence: ask.confidence, seconds, samples: all.len(), because })
}

/// A line along the lower edge.
struct Line {
    /// In hours.
    edge: Vec<(f64, f64)>,
    per_hour: f64,
    low: f64,
    high: f64,
    /// What the line leaves.
    left: Vec<f64>,
    /// There are enough values for the confidence.
    shown: bool,
}

impl Line {
    /// `chosen`: how many times less often than said the interval may miss.
    fn of(edge: Vec<(f64, f64)>, confidence: f64, chosen: f64) -> Option<Self> {
        let confidence = confidence.clamp(0.5, 0.9999);
        let n = edge.len() as f64;
        if edge.len() < LEAST {
            return None;
        }
        let leaves = |slope: f64| edge.iter().map(|(h, v)| v - slope * h).collect::<Vec<f64>>();
        if edge.len() < FEW {
            let (per_hour, error) = least_squares(&edge)?;
            let half = t_quantile(1.0 - 0.5 * (1.0 - confidence) / chosen, n - 2.0) * error;
            let (low, high) = (per_hour - half, per_hour + half);
            return Some(Self { per_hour, low, high, left: leaves(per_hour), edge, shown: true });
        }
        let slopes = slopes(&edge);
        let per_hour = quantile(&slopes, 0.5)?;
        let left = leaves(per_hour);
        let half = normal_quantile(1.0 - 0.5 * (1.0 - confidence) / chosen) * spread(&left);
        // Sen: the slopes at these ranks bound the interval.
        let pairs = slopes.len() as f64;
        let rank = |r: f64| quantile(&slopes, (r / pairs.max(1.0)).clamp(0.0, 1.0));
        let (low, high) = (rank(0.5 * (pairs - half))?, rank(0.5 * (pairs + half))?);
        // Where even all slopes are too few for the confidence, nothing is shown.
        Some(Self { per_hour, low, high, left, edge, shown: half < pairs })
    }
}

/// The slope of least squares and its standard error.
fn least_squares(edge: &[(f64, f64)]) -> Option<(f64, f64)> {
    let n = edge.len() as f64;
    let (mt, mv) = (edge.iter().map(|p| p.0).sum::<f64>() / n, edge.iter().map(|p| p.1).sum::<f64>() / n);
    let tt: f64 = edge.iter().map(|p| (p.0 - mt).powi(2)).sum();
    let slope = edge.iter().map(|p| (p.0 - mt) * (p.1 - mv)).sum::<f64>() / tt;
    let rest: f64 = edge.iter().map(|p| (p.1 - mv - slope * (p.0 - mt)).powi(2)).sum();
    let error = (rest / (n - 2.0).max(1.0) / tt).sqrt();
    (slope.is_finite() && error.is_finite()).then_some((slope, error))
}

/// What was held at the end of each tooth.
fn floors(all: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let Some(first) = all.first() else { return Vec::new() };
    let drop = drop_of(all);
    let mut out: Vec<(f64, f64)> = Vec::new();
    let mut fell = false;
    for near in all.windows(SHARP + 1) {
        let Some(now) = near.last() else { continue };
        let falls = falls(near, drop);
        let floor = ((now.0 - first.0) / HOUR, now.1);
        match out.last_mut().filter(|_| falls && fell) {
            // A fall over several samples is one.
            Some(last) if floor.1 < last.1 => *last = floor,
            None if falls => out.push(floor),
            _ => {}
        }
        fell = falls;
    }
    out
}

/// The last of these samples lies that much below the highest of them.
fn falls(near: &[(f64, f64)], drop: f64) -> bool {
    let peak = near.iter().map(|s| s.1).fold(f64::NEG_INFINITY, f64::max);
    near.last().is_some_and(|now| peak - now.1 > drop)
}

/// How far a fall goes that ends a tooth: it stands out of the noise and of all that the series moves.
fn drop_of(all: &[(f64, f64)]) -> f64 {
    let steps: Vec<f64> = all.windows(2).filter_map(|w| Some(w.last()?.1 - w.first()?.1)).collect();
    let values = sorted(all.iter().map(|s| s.1));
    let moves = values.last().zip(values.first()).map_or(0.0, |(high, low)| high - low);
    (mad(&steps).unwrap_or_default() * NORMAL_MAD * TOOTH_DEVIATIONS).max(moves * TOOTH_SHARE)
}

/// The longest time between two ends of teeth: drops within [`SHARP`] samples that stand out of the noise and of all that the
/// series moves. 0 where it has none. The time before the first and after the last end counts too: a tooth may be cut.
fn longest_tooth(all: &[(f64, f64)]) -> f64 {
    let drop = drop_of(all);
    let (Some(first), Some(last)) = (all.first(), all.last()) else { return 0.0 };
    let mut longest: f64 = 0.0;
    let mut end = first.0;
    let mut ended = false;
    for near in all.windows(SHARP + 1) {
        let Some(now) = near.last() else { continue };
        if falls(near, drop) {
            longest = longest.max(now.0 - end);
            (end, ended) = (now.0, true);
        }
    }
    if ended { longest.max(last.0 - end) } else { 0.0 }
}

/// The lower edge: for each part of the time, in hours, the least that was held in it.
fn edge(all: &[(f64, f64)], n: usize) -> Vec<(f64, f64)> {
    let (Some(first), Some(last)) = (all.first(), all.last()) else { return Vec::new() };
    let length = (last.0 - first.0) / n.max(1) as f64;
    let mut out = Vec::new();
    let mut from = 0;
    for i in 1..=n {
        let end = first.0 + length * i as f64;
        let to = if i == n { all.len() } else { all.partition_point(|s| s.0 < end) };
        let part = all.get(from..to).unwrap_or_default();
        from = to;
        let Some(least) = part.iter().min_by(|a, b| a.1.total_cmp(&b.1)) else { continue };
        // A part of one sample is as old as it; else the middle stands for it, so that a minimum early in one part and late
        // in the next makes no slope.
        let at = if part.len() == 1 { least.0 } else { end - 0.5 * length };
        out.push(((at - first.0) / HOUR, least.1));
    }
    out
}

/// What load takes.
struct Load {
    /// For each unit of load; never less than 0.
    takes: f64,
    /// Mean load.
    mean: f64,
    /// The share of what load moves that moves along with time.
    tied: f64,
    /// Of the squares of what time leaves.
    explains: f64,
    /// Load as memory follows it, by sample.
    loads: Vec<f64>,
}

impl Load {
    /// How much wider an interval of the slope is.
    fn wider(&self) -> f64 {
        1.0 / (1.0 - self.tied).max(1e-6).sqrt()
    }
}

/// Load as a second cause, by least squares with time as the first: as it was, or as memory follows it late, whichever
/// explains more. None where it is not known of every sample or did not move.
fn load_of(all: &[Sample]) -> Option<Load> {
    let loads: Vec<f64> = all.iter().map(|s| s.load.filter(|l| l.is_finite())).collect::<Option<_>>()?;
    let late = LATE.iter().filter_map(|by| explained(all, followed(all, &loads, *by)));
    late.max_by(|a, b| a.explains.total_cmp(&b.explains))
}

/// Load as it is followed within some seconds.
fn followed(all: &[Sample], loads: &[f64], by: f64) -> Vec<f64> {
    let mut now = loads.first().copied().unwrap_or_default();
    let mut before = all.first().map_or(0.0, |s| s.seconds);
    let mut out = Vec::with_capacity(loads.len());
    for (s, load) in all.iter().zip(loads) {
        now += (load - now) * if by > 0.0 { 1.0 - ((before - s.seconds) / by).exp() } else { 1.0 };
        before = s.seconds;
        out.push(now);
    }
    out
}

fn explained(all: &[Sample], loads: Vec<f64>) -> Option<Load> {
    let points: Vec<(f64, f64, f64)> =
        all.iter().zip(&loads).map(|(s, l)| (s.seconds / HOUR, *l, s.value)).collect();
    let n = points.len() as f64;
    let mean = |f: &dyn Fn(&(f64, f64, f64)) -> f64| points.iter().map(f).sum::<f64>() / n;
    let (mt, ml, mv) = (mean(&|p| p.0), mean(&|p| p.1), mean(&|p| p.2));
    let tt = mean(&|p| (p.0 - mt).powi(2));
    let ll = mean(&|p| (p.1 - ml).powi(2));
    let tl = mean(&|p| (p.0 - mt) * (p.1 - ml));
    let tv = mean(&|p| (p.0 - mt) * (p.2 - mv));
    let lv = mean(&|p| (p.1 - ml) * (p.2 - mv));
    if ll <= 1e-12 * (ml * ml + 1e-12) || tt <= 0.0 {
        return None;
    }
    let tied = (tl * tl / (tt * ll)).clamp(0.0, 1.0);
    // Of what time leaves of both.
    let alone = ll * (1.0 - tied).max(1e-6);
    let with = lv - tl / tt * tv;
    let takes = (with / alone).max(0.0);
    Some(Load { takes, mean: ml, tied, explains: takes * with, loads })
}

fn slopes(edge: &[(f64, f64)]) -> Vec<f64> {
    let pairs = edge.iter().enumerate().flat_map(|(i, (t, v))| {
        edge.get(i + 1..).unwrap_or_default().iter().map(move |(u, w)| (w - v) / (u - t))
    });
    sorted(pairs)
}

/// The slopes of both halves.
#[derive(Clone, Copy)]
struct Halves {
    before: f64,
    after: f64,
    /// Deviation of their difference.
    deviation: f64,
}

impl Halves {
    /// The later one rises less than the earlier one, and not by chance.
    fn decelerates(&self) -> bool {
        self.after < self.before * SETTLES && self.before - self.after > DECELERATES * self.deviation
    }
}

fn halves(edge: &[(f64, f64)]) -> Option<Halves> {
    let (early, later) = edge.split_at(edge.len() / 2);
    let half = |part: &[(f64, f64)]| {
        let all = slopes(part);
        let slope = quantile(&all, 0.5)?;
        let left: Vec<f64> = part.iter().map(|(h, v)| v - slope * h).collect();
        let n = all.len() as f64;
        let of = |r: f64| quantile(&all, (r / n.max(1.0)).clamp(0.0, 1.0));
        // Ranks that are one deviation to each side are as far apart as four deviations of the sum.
        let deviation = spread(&left);
        Some((slope, 0.25 * (of(0.5 * n + deviation)? - of(0.5 * n - deviation)?)))
    };
    let ((before, a), (after, b)) = (half(early)?, half(later)?);
    Some(Halves { before, after, deviation: a.hypot(b) })
}

/// The deviation of Kendall's sum, in pairs, where what is left remembers (Hamed and Rao, for the first lag).
fn spread(left: &[f64]) -> f64 {
    let n = left.len() as f64;
    let plain = n * (n - 1.0) * (2.0 * n + 5.0) / 18.0;
    let middle = median(left.iter().copied()).unwrap_or_default();
    let around: Vec<f64> = left.iter().map(|v| v - middle).collect();
    let all: f64 = around.iter().map(|v| v * v).sum();
    let next: f64 = around.iter().zip(around.iter().skip(1)).map(|(a, b)| a * b).sum();
    // What chance alone makes of few values is no memory.
    let remembers = if all > 0.0 && left.len() >= MEMORY_FROM { next / all } else { 0.0 };
    let remembers = if remembers > 0.0 { (remembers + 2.0 / n).min(MEMORY) } else { 0.0 };
    (plain * (1.0 + remembers) / (1.0 - remembers)).sqrt()
}
