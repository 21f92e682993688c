//! Copies of a model on one card: as many as its memory held, from the lines that tell of each copy.

use crate::actions::{Action, Context, Stage};
use dualplane_base::Phase;
use dualplane_base::text::{counted, name};
use dualplane_base::units::Bytes;
use dualplane_core::facts::Hit;
use dualplane_core::facts::vram::VramOom;
use dualplane_engines::Instances;

/// The part of a card that copies may fill: the rest is for what varies.
const FILLED: f64 = 0.95;

/// The number of copies that fits; `None` where the evidence does not tell what one takes.
pub(super) fn instances(cx: &Context<'_>, of: &Instances, oom: &VramOom) -> Option<Action> {
    let trigger = cx.verdict.trigger.as_ref()?;
    let told = |h: &&Hit| {
        h.id == of.signature && h.place.file == trigger.place.file && h.place.line < trigger.place.line
    };
    let all: Vec<(String, String)> = cx
        .facts
        .hits
        .iter()
        .filter(told)
        .filter_map(|h| Some((h.word("model")?, h.word("device")?)))
        .collect();
    let (model, device) = all.last()?;
    let here = || all.iter().filter(|(_, d)| d == device);
    let begun = here().filter(|(m, _)| m == model).count() as u64;
    let alone = here().all(|(m, _)| m == model);
    let (fits, why) = match cx.verdict.phase {
        Phase::Load => loading(begun, device)?,
        Phase::Traffic if alone => serving(begun, oom)?,
        _ => return None,
    };
    if fits == 0 || fits >= begun {
        return None;
    }
    let setting = of.setting.replace("{}", &name(model));
    Some(Action::new(Stage::Fix, format!("Set {setting} to {fits} (from {begun})")).because(why))
}

/// The last copy failed while the others were there.
fn loading(begun: u64, device: &str) -> Option<(u64, String)> {
    let fits = begun.checked_sub(1)?;
    let why = format!("GPU {} held {} when the next one failed", name(device), counted(fits, "instance"));
    Some((fits, why))
}

/// What all copies and the failed request took, divided among them.
fn serving(begun: u64, oom: &VramOom) -> Option<(u64, String)> {
    let (own, requested, total) = (oom.own()?, oom.requested?, oom.total?);
    let need = own.saturating_add(requested);
    let each = Bytes(need.0.checked_div(begun)?);
    let fits = total.scale(FILLED).0.checked_div(each.0)?;
    let why = format!(
        "(this process {own} + the failed request {requested}) ÷ {} = {each} each; {FILLED} × {total} ÷ that = {fits}",
        counted(begun, "instance")
    );
    Some((fits, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn what_fits_never_takes_more_than_the_card() {
        for begun in 1..12 {
            for own in [1, 7, 23, 40, 78] {
                for requested in [1, 4, 30] {
                    let oom = VramOom {
                        total: Some(Bytes(80 * GIB)),
                        this_process: Some(Bytes(own * GIB)),
                        requested: Some(Bytes(requested * GIB)),
                        ..VramOom::default()
                    };
                    let (fits, _) = serving(begun, &oom).unwrap();
                    let each = (own + requested) * GIB / begun;
                    assert!(fits * each <= 80 * GIB, "{fits} of {begun} with {own} + {requested}");
                }
            }
        }
        assert_eq!(serving(2, &VramOom::default()), None);
    }

    #[test]
    fn while_loading_those_that_were_there_fit() {
        assert_eq!(loading(3, "0").unwrap().0, 2);
        assert_eq!(loading(0, "0"), None);
    }
}
