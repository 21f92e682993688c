//! Groups of layers that share block ids.
//!
//! Source: vLLM 0.33.0 v1/core/kv_cache_planning.py, in the order in which it tries. Before 0.33.0 the same lay in
//! v1/core/kv_cache_utils.py.

use super::layers::LayerSpec;
use super::spec::{Kind, Need, Spec};
use crate::arith::{ceil_div, floor_div, lcm, round_up};
use crate::outcome::PlanError;

/// A group: members as positions in the list of specs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    /// Positions of its members, ascending.
    pub(crate) members: Vec<usize>,
    /// The members' own specs where they differ (one page after the other), else one for all.
    pub(crate) specs: Vec<Spec>,
}

impl Group {
    fn of(members: Vec<usize>, spec: Spec) -> Self {
        Self { members, specs: vec![spec] }
    }

    fn mixed(members: Vec<usize>, all: &[LayerSpec]) -> Self {
        let specs = members.iter().filter_map(|m| all.get(*m)).map(|l| l.spec).collect();
        Self { members, specs }
    }

    pub(crate) fn first(&self) -> Option<&Spec> {
        self.specs.first()
    }

    /// Whether pages of different specs lie side by side.
    pub(crate) const fn is_mixed(&self) -> bool {
        self.specs.len() > 1
    }

    /// Blocks of a request by the group's first spec, as the printed concurrency counts them.
    pub(crate) fn blocks_printed(&self, need: &Need) -> u64 {
        self.first().map_or(0, |s| s.blocks(need))
    }

    /// Blocks of a request by the spec that needs most, as the check of memory counts them.
    pub(crate) fn blocks_needed(&self, need: &Need) -> u64 {
        self.specs.iter().map(|s| s.blocks(need)).max().unwrap_or(0)
    }

    /// Bytes of one block id over the members that `keep` lets through.
    pub(crate) fn bytes(&self, strided: bool, keep: impl Fn(usize) -> bool) -> u64 {
        let one = |s: &Spec| if strided { s.stride_bytes() } else { s.page };
        match self.specs.as_slice() {
            [spec] => {
                let n = self.members.iter().filter(|m| keep(**m)).count() as u64;
                one(spec).saturating_mul(n)
            }
            specs => self
                .members
                .iter()
                .zip(specs)
                .filter(|(m, _)| keep(**m))
                .fold(0, |sum, (_, s)| sum.saturating_add(one(s))),
        }
    }
}

/// The groups of a model, with the slots that are paid for and hold nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Groups {
    pub(crate) groups: Vec<Group>,
    pub(crate) padding: u64,
    /// Blocks lie one after the other, each with the pages of all layers (DeepSeek-V4).
    pub(crate) block_outermost: bool,
}

impl Groups {
    /// Bytes of one block id over the members that `keep` lets through.
    pub(crate) fn bytes_per_block(&self, keep: impl Fn(usize) -> bool + Copy) -> u64 {
        let widest = self.groups.iter().map(|g| g.bytes(!self.block_outermost, keep)).max().unwrap_or(0);
        if !self.block_outermost {
            return widest;
        }
        let step = self.groups.iter().flat_map(|g| &g.specs).fold(1, |a, s| lcm(a, s.stride.max(1)));
        round_up(widest, step)
    }
}

/// Splits layers into groups.
pub(crate) fn groups(all: &[LayerSpec], unify: bool, block_outermost: bool) -> Result<Groups, PlanError> {
    let mut own;
    let mut all = all;
    if unify {
        own = all.to_vec();
        promote(&mut own);
        all = &own;
    }
    let Some(first) = all.first() else { return Ok(Groups::default()) };
    let everyone: Vec<usize> = (0..all.len()).collect();
    if all.iter().all(|l| l.spec == first.spec) {
        return Ok(Groups { groups: vec![Group::of(everyone, first.spec)], ..Groups::default() });
    }
    if uniform(all, &everyone) {
        return Ok(Groups { groups: vec![Group::mixed(everyone, all)], ..Groups::default() });
    }
    if block_outermost && all.iter().any(|l| l.spec.page != first.spec.page) {
        return Ok(Groups { groups: packed(all), padding: 0, block_outermost });
    }
    let mut unified = all.to_vec();
    unify_pages(&mut unified)?;
    Ok(by_spec(&unified))
}

/// Whether these layers always need the same number of token slots.
fn uniform(all: &[LayerSpec], members: &[usize]) -> bool {
    let mut specs = members.iter().filter_map(|m| all.get(*m)).map(|l| &l.spec);
    let Some(first) = specs.next() else { return false };
    specs.all(|s| {
        s.block == first.block
            && first.kind.same_slots(s.kind)
            && (!matches!(s.kind, Kind::State { .. }) || s.page == first.page)
    })
}

/// `--disable-hybrid-kv-cache-manager`: windows and chunks are billed as full where there are full layers.
fn promote(all: &mut [LayerSpec]) {
    if !all.iter().any(|l| matches!(l.spec.kind, Kind::Full | Kind::Mla)) {
        return;
    }
    for l in all {
        l.spec.kind = match l.spec.kind {
            Kind::Sliding { .. } | Kind::Chunked { .. } => Kind::Full,
            Kind::SlidingMla { .. } => Kind::Mla,
            kind => kind,
        };
    }
}

/// Gives every layer the largest page: more tokens a block where it divides, padding where it does not.
fn unify_pages(all: &mut [LayerSpec]) -> Result<(), PlanError> {
    let largest = all.iter().map(|l| l.spec.page).max().unwrap_or(0);
    for l in all {
        let s = &mut l.spec;
        if s.page == largest || s.page == 0 {
            continue;
        }
        match s.kind {
            Kind::State { .. } => s.page = largest,
            _ if largest.is_multiple_of(s.page) => {
                s.block = s.block.saturating_mul(floor_div(largest, s.page));
                s.page = largest;
            }
            Kind::Mla | Kind::SlidingMla { .. } => {
                return Err(PlanError::contradiction(
                    "config.json: layers",
                    "page size is not divisible by the maximum page size and cannot be padded",
                ));
            }
            _ => s.page = largest,
        }
    }
    Ok(())
}

/// Buckets of equal specs, cut into groups of equally many layers.
fn by_spec(all: &[LayerSpec]) -> Groups {
    let mut buckets: Vec<(Spec, Vec<usize>)> = Vec::new();
    for (i, l) in all.iter().enumerate() {
        match buckets.iter_mut().find(|(s, _)| *s == l.spec) {
            Some((_, members)) => members.push(i),
            None => buckets.push((l.spec, vec![i])),
        }
    }
    let least = buckets.iter().map(|(_, m)| m.len()).min().unwrap_or(1).max(1);
    let most = buckets.iter().map(|(_, m)| m.len()).max().unwrap_or(1);
    // vLLM's heuristic: below 1.5 times, the larger count wastes less.
    let size = if most * 2 < least * 3 { most } else { least };
    let mut out = Groups::default();
    for (spec, members) in buckets {
        let count = members.len().div_ceil(size);
        out.padding += (count * size - members.len()) as u64;
        for g in 0..count {
            // Dealt round robin, so that each pipeline stage has its share of each group.
            out.groups.push(Group::of(members.iter().skip(g).step_by(count).copied().collect(), spec));
        }
    }
    out
}

/// A bucket of layers with the same slots, by page size.
struct Bucket {
    members: Vec<usize>,
    pages: Vec<(u64, Vec<usize>)>,
}

impl Bucket {
    /// Whether each page size occurs equally often, so that the bucket is a repeated pattern.
    fn balanced(&self) -> bool {
        let n = self.pages.first().map_or(0, |(_, m)| m.len());
        self.pages.iter().all(|(_, m)| m.len() == n)
    }

    fn repeats(&self) -> u64 {
        self.pages.iter().map(|(_, m)| m.len()).max().unwrap_or(0) as u64
    }
}

/// Groups of mixed pages for blocks that lie one after the other (vLLM `_get_packed_kv_cache_groups`).
fn packed(all: &[LayerSpec]) -> Vec<Group> {
    let mut buckets: Vec<Bucket> = Vec::new();
    for (i, l) in all.iter().enumerate() {
        let fits = |b: &&mut Bucket| b.members.first().is_some_and(|first| uniform(all, &[*first, i]));
        match buckets.iter_mut().find(fits) {
            Some(b) => {
                b.members.push(i);
                match b.pages.iter_mut().find(|(p, _)| *p == l.spec.page) {
                    Some((_, m)) => m.push(i),
                    None => b.pages.push((l.spec.page, vec![i])),
                }
            }
            None => buckets.push(Bucket { members: vec![i], pages: vec![(l.spec.page, vec![i])] }),
        }
    }
    let least =
        buckets.iter().filter(|b| b.balanced() && b.pages.len() > 1).map(Bucket::repeats).max().unwrap_or(0);
    let counts: Vec<u64> = buckets.iter().filter(|b| b.balanced()).map(Bucket::repeats).collect();
    let repeats = (least > 0).then(|| approximate_gcd(&counts, least));
    let mut out = Vec::new();
    for b in &buckets {
        let count = match repeats {
            Some(r) if b.balanced() => ceil_div(b.repeats(), r),
            _ => 1,
        };
        let count = usize::try_from(count).unwrap_or(1).max(1);
        if count == 1 {
            out.push(Group::mixed(b.members.clone(), all));
            continue;
        }
        for g in 0..count {
            let mut members: Vec<usize> =
                b.pages.iter().flat_map(|(_, m)| m.iter().skip(g).step_by(count).copied()).collect();
            members.sort_unstable();
            out.push(Group::mixed(members, all));
        }
    }
    out
}

/// The divisor from `least` on that pads these counts least; the larger of two equal ones.
fn approximate_gcd(counts: &[u64], least: u64) -> u64 {
    let most = counts.iter().copied().max().unwrap_or(least);
    (least.max(1)..=most.max(least))
        .min_by_key(|d| {
            let padding: u64 = counts.iter().map(|c| round_up(*c, *d) - c).sum();
            (padding, u64::MAX - d)
        })
        .unwrap_or(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layers(kinds: &[(Kind, u64, usize)]) -> Vec<LayerSpec> {
        let specs = kinds.iter().flat_map(|(kind, page, n)| {
            std::iter::repeat_n(
                Spec { kind: *kind, block: 16, page: *page, stride: 1, shape: [*page, 0, 0, 0] },
                *n,
            )
        });
        specs.enumerate().map(|(i, spec)| LayerSpec { layer: i as u64, spec }).collect()
    }

    #[test]
    fn a_small_kind_sets_the_group_size_and_pads() {
        let g = groups(&layers(&[(Kind::Full, 32, 10), (Kind::Sliding { window: 8 }, 32, 52)]), false, false)
            .unwrap();
        assert_eq!(g.groups.len(), 1 + 6);
        assert_eq!(g.padding, 8);
        assert_eq!(g.bytes_per_block(|_| true), 320);
        let g = groups(&layers(&[(Kind::Full, 32, 13), (Kind::Sliding { window: 8 }, 32, 12)]), false, false)
            .unwrap();
        assert_eq!((g.groups.len(), g.padding), (2, 1));
    }

    #[test]
    fn a_smaller_page_takes_more_tokens() {
        let g = groups(&layers(&[(Kind::Full, 16, 9), (Kind::Sliding { window: 8 }, 32, 39)]), false, false)
            .unwrap();
        assert_eq!(g.groups[0].first().unwrap().block, 32);
        assert_eq!(g.groups.iter().map(|g| g.members.len()).collect::<Vec<_>>(), [9, 8, 8, 8, 8, 7]);
        assert_eq!(g.bytes_per_block(|_| true), 9 * 32);
    }

    #[test]
    fn without_the_hybrid_manager_windows_are_full() {
        let all = layers(&[(Kind::Full, 32, 10), (Kind::Sliding { window: 8 }, 32, 52)]);
        let g = groups(&all, true, false).unwrap();
        assert_eq!(g.groups.len(), 1);
        assert_eq!(g.bytes_per_block(|_| true), 62 * 32);
    }
}
