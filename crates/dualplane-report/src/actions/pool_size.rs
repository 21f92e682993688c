//! A setting that gives the KV cache its size. While it stands, the engine's share of the card moves nothing: advice on the
//! share would be carried out in vain.

use super::vram::room_for_a_step;
use super::{Action, Context, Stage};
use crate::planned::RefusedStart;
use dualplane_base::units::{Bytes, MIB, thousands};
use dualplane_core::facts::vram::VramOom;
use dualplane_engines::{PoolSize, PoolUnit};
use dualplane_plan::cli::human;

/// Pages are at most so many tokens: a pool below its cap by less than that is the cap in whole pages.
const PAGE: f64 = 1024.0;

/// The engine prints GiB with two decimals.
const ROUNDED: Bytes = Bytes(5 * MIB + MIB / 8);

/// The setting as it is.
pub(super) struct Given<'a> {
    unit: PoolUnit,
    /// Its first name.
    pub(super) flag: &'a str,
    /// As it is written.
    pub(super) value: &'a str,
    number: u64,
}

/// The setting that gives the pool its size; `None` where the engine measures.
pub(super) fn given<'a>(cx: &Context<'a>) -> Option<Given<'a>> {
    let e = &cx.facts.engine;
    let binds = |p: &PoolSize, number: u64| {
        let printed = || cx.facts.hits.iter().rev().find_map(|h| h.number("kv_tokens"));
        !p.at_most || printed().is_some_and(|t| t <= number as f64 && number as f64 - t < PAGE)
    };
    e.head()?.flags.pool.iter().find_map(|p| {
        let value = e.lever(&p.names)?;
        let number = human(value).filter(|n| *n > 0 && binds(p, *n))?;
        Some(Given { unit: p.unit, flag: p.names.first()?, value, number })
    })
}

impl Given<'_> {
    fn words(&self) -> String {
        match self.unit {
            PoolUnit::Bytes => Bytes(self.number).to_string(),
            PoolUnit::Blocks => format!("{} blocks", thousands(self.number)),
            PoolUnit::Tokens => format!("{} tokens", thousands(self.number)),
        }
    }

    fn vain(&self, cx: &Context<'_>) -> String {
        let words = self.words();
        match super::vram::utilization_flag(cx).filter(|_| cx.facts.engine.on_cpu().is_none()) {
            Some(share) => format!(
                "{} gives the KV cache its size ({words}); {share} moves nothing while it stands",
                self.flag
            ),
            None => format!("{} gives the KV cache its size ({words})", self.flag),
        }
    }

    /// The engine refused to start, because one longest request does not fit the pool.
    pub(super) fn start(&self, cx: &Context<'_>, told: RefusedStart, out: &mut Vec<Action>) {
        let Self { flag, value, .. } = self;
        let measured = cx.facts.hits.iter().rev().find_map(|h| h.number("measured_blocks"));
        let room = measured.map(|n| format!("the engine measured room for {} blocks", thousands(n as u64)));
        let of = told.needed.zip(told.available);
        let want = match (self.unit, of, told.max_model_len) {
            // What the pool holds back for itself stays held back.
            (PoolUnit::Bytes, Some((need, have)), _) => {
                let kept = Bytes(self.number).saturating_sub(have.saturating_sub(ROUNDED));
                let bytes = need.saturating_add(ROUNDED).saturating_add(kept).0.div_ceil(MIB) * MIB;
                Some((bytes, format!("needed {need} + {kept} that the pool keeps for itself, in whole MiB")))
            }
            (PoolUnit::Blocks, Some((need, have)), _) if have.0 > 2 * ROUNDED.0 => {
                let share = need.saturating_add(ROUNDED).share_of(have.saturating_sub(ROUNDED));
                let blocks = (share * self.number as f64).ceil() as u64 + 1;
                let sum =
                    format!("needed {need} ÷ available {have} × {value} blocks, and one that it keeps back");
                Some((blocks, sum))
            }
            (PoolUnit::Tokens, _, Some(len)) => {
                Some((len + PAGE as u64, format!("{} tokens of one request and a page", thousands(len))))
            }
            _ => None,
        };
        let mut taken = self.taken_out(cx);
        taken.arithmetic.extend(room);
        out.push(taken);
        // A pool that the engine itself found too large would end in an error of CUDA.
        let fits = |blocks: u64| self.unit != PoolUnit::Blocks || measured.is_none_or(|m| blocks as f64 <= m);
        if let Some((want, sum)) = want.filter(|(want, _)| *want > self.number && fits(*want)) {
            out.push(
                Action::new(
                    Stage::Fix,
                    format!("Or set {flag} {want} (from {value}), where that much VRAM is free"),
                )
                .because(sum)
                .set(cx, flag, want, Some((*value).to_owned())),
            );
        }
    }

    /// The engine measures how large the pool may be.
    pub(super) fn taken_out(&self, cx: &Context<'_>) -> Action {
        let Self { flag, value, .. } = self;
        let title = format!("Or take out {flag} {value}: the engine then measures how much fits");
        Action::new(Stage::Fix, title).because(self.vain(cx)).take_out(cx, flag, value)
    }

    /// A step did not fit beside the pool: the pool gives up what was missing, and the request once more for the next one.
    pub(super) fn lower(&self, cx: &Context<'_>, oom: &VramOom) -> Option<Action> {
        let Self { flag, value, .. } = self;
        let (give, sum) = room_for_a_step(oom)?;
        let each = match self.unit {
            PoolUnit::Bytes => Some(1),
            PoolUnit::Blocks => block(cx),
            PoolUnit::Tokens => None,
        };
        let want = each.and_then(|each| self.number.checked_sub(give.0.div_ceil(each))).filter(|w| *w > 0);
        let action = match want {
            Some(want) => Action::new(
                Stage::Fix,
                format!("Set {flag} {want} (from {value}): the KV cache gives up {give}"),
            )
            .because(sum)
            .because(match self.unit {
                PoolUnit::Blocks => {
                    format!("{value} − {give} ÷ {} of a block", Bytes(each.unwrap_or_default()))
                }
                _ => format!("{} − {give}", Bytes(self.number)),
            })
            .set(cx, flag, want, Some((*value).to_owned())),
            None => Action::new(
                Stage::Fix,
                format!(
                    "Take out {flag} {value}: the engine then leaves room for a step that it has measured"
                ),
            )
            .because(sum)
            .take_out(cx, flag, value),
        };
        Some(action.because(self.vain(cx)))
    }
}

/// Bytes of a block, as the plan of the launch has them.
fn block(cx: &Context<'_>) -> Option<u64> {
    let plan = cx.budget.expected.as_ref()?.gpu.as_ref()?;
    Some(plan.gpu.kv_cache.bytes_per_block).filter(|b| *b > 0)
}
