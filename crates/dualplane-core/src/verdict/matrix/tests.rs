//! Rules of the matrix that hold whatever the evidence is.

use super::scene::{Scene, Stage};
use super::{Row, ranked};
use crate::facts::Place;
use crate::units::{Bytes, GIB};
use crate::verdict::Class;

const CARD: Bytes = Bytes(80 * GIB);

fn at() -> Place {
    Place { file: "previous.log".into(), line: Some(1) }
}

/// Numbers from a seed: the same each run.
struct Seeded(u64);

impl Seeded {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    fn some<T>(&mut self, value: T) -> Option<T> {
        (self.next(2) == 1).then_some(value)
    }

    fn share(&mut self) -> f64 {
        self.next(101) as f64 / 100.0
    }

    fn scene(&mut self) -> Scene {
        let of_card = |s: &mut Self| CARD.scale(s.share());
        let classes = [
            Class::CudaOomLoad,
            Class::CudaOomRuntime,
            Class::KvCacheCapacity,
            Class::GpuCapacityConflict,
            Class::Fragmentation,
        ];
        let stages = [Stage::Loading, Stage::Sizing, Stage::Serving, Stage::Unknown];
        let (weights, own, others, requested) = (of_card(self), of_card(self), of_card(self), of_card(self));
        let (share, kv, most, least) = (self.share(), self.share(), self.share(), self.share());
        let (done, ranks, gpus) = (self.next(9), 1 + self.next(8), 1 + self.next(8));
        let (sequences, length, pool) = (1 + self.next(512), 1 + self.next(131_072), 1 + self.next(900_000));
        Scene {
            class: classes.get(self.next(5) as usize).copied(),
            phase: stages[self.next(4) as usize],
            line: None,
            weights: self.some((weights, at())),
            total: self.some(CARD),
            shards: self.some((done, 9, at())),
            settings: self.next(2) == 1,
            quantised: self.some(("--quantization".into(), "fp8".into())),
            sequences: self.some(sequences),
            length: self.some(length),
            pool: self.some(pool),
            kv_use: self.some((kv, at())),
            preallocates: self.next(2) == 1,
            share: self.some(share),
            requested: self.some(requested),
            own: self.some(own),
            others: self.some(others),
            ranks: self.some(ranks),
            gpus: self.some(gpus),
            cards: self.some((most.max(least), most.min(least), at())),
            scaler: self.some(("llm".into(), "cpu: 12%/80%".into())),
            probe: self.some(("Container llm failed liveness probe, will be restarted".into(), at())),
        }
    }
}

fn score(scene: &Scene, row: fn(&Scene) -> Row) -> i32 {
    row(scene).score()
}

#[test]
fn rows_are_ranked_and_none_stands_without_evidence() {
    let mut seeded = Seeded(15);
    for _ in 0..20_000 {
        let scene = seeded.scene();
        let rows = ranked(&scene);
        let keys: Vec<_> = rows.iter().map(|r| (!r.holds(), -r.score())).collect();
        assert!(keys.windows(2).all(|w| w[0] <= w[1]), "{rows:#?}");
        for r in &rows {
            assert!(!r.supports.is_empty() || !r.against.is_empty(), "{r:#?}");
            assert!(!r.holds() || !r.supports.is_empty(), "{r:#?}");
        }
        let titles: std::collections::BTreeSet<_> = rows.iter().map(|r| r.title).collect();
        assert_eq!(titles.len(), rows.len(), "each row once");
    }
}

#[test]
fn more_of_the_same_evidence_never_lowers_its_row() {
    let mut seeded = Seeded(39);
    for _ in 0..20_000 {
        let scene = seeded.scene();
        let with = |change: &dyn Fn(&mut Scene)| {
            let mut s = scene.clone();
            change(&mut s);
            s
        };
        let heavier = |by: f64| {
            with(&|s| {
                if let Some((w, _)) = &mut s.weights {
                    *w = CARD.scale((w.share_of(CARD) + by).min(1.0));
                }
            })
        };
        let w = super::weights::row;
        assert!(score(&heavier(0.3), w) >= score(&scene, w), "{scene:#?}");
        let fuller = with(&|s| s.kv_use = s.kv_use.take().map(|(u, at)| ((u + 0.3).min(1.0), at)));
        assert!(score(&fuller, super::kv::row) >= score(&scene, super::kv::row), "{scene:#?}");
        let longer = with(&|s| s.length = s.length.map(|l| l * 4));
        assert!(score(&longer, super::kv::row) >= score(&scene, super::kv::row), "{scene:#?}");
        let nearer = with(&|s| s.share = s.share.map(|u| (u + 0.2).min(1.0)));
        assert!(score(&nearer, super::edge::row) >= score(&scene, super::edge::row), "{scene:#?}");
        let wider = with(&|s| s.cards = s.cards.take().map(|(m, l, at)| (m, l / 2.0, at)));
        assert!(score(&wider, super::sharding::row) >= score(&scene, super::sharding::row), "{scene:#?}");
        let crowded = with(&|s| s.others = s.others.map(|o| o.saturating_add(Bytes(8 * GIB))));
        assert!(
            score(&crowded, super::scheduling::row) >= score(&scene, super::scheduling::row),
            "{scene:#?}"
        );
    }
}

#[test]
fn what_failed_before_the_cache_existed_is_no_lack_of_cache() {
    let mut seeded = Seeded(7);
    for _ in 0..20_000 {
        let mut scene = seeded.scene();
        scene.phase = Stage::Loading;
        scene.class = Some(Class::CudaOomLoad);
        scene.kv_use = None;
        assert!(!super::kv::row(&scene).holds(), "{scene:#?}");
    }
}

#[test]
fn all_cards_in_use_alike_are_no_wrong_split() {
    let mut seeded = Seeded(8);
    for _ in 0..20_000 {
        let mut scene = seeded.scene();
        scene.ranks = scene.gpus;
        scene.cards = scene.cards.map(|(m, _, at)| (m, m, at));
        let single = scene.gpus.is_none_or(|g| g == 1);
        scene.settings &= !single;
        assert!(!super::sharding::row(&scene).holds(), "{scene:#?}");
    }
}
