//! `dualplane plan`: how a model server's memory will divide, before it runs.

mod calibration;
mod question;

pub(super) use question::Question;

use dualplane_base::units::{Bytes, MIB, parse_memory};
use dualplane_plan::card::Placed;
use dualplane_plan::report::plan as report;
use dualplane_plan::{Calibration, Launch, Measured, Plan, answer, compare, plan};

use super::Failure;
use crate::args::{EmitWhat, LaunchArgs, PlanArgs, PlanFormat};
use crate::exit::{self, Code};
use crate::output;

pub(crate) fn run(args: &PlanArgs) -> Result<Code, Failure> {
    let mut q = Question::read(&args.launch)?;
    if let Some(size) = &args.available_kv {
        q.line.launch.available_kv_bytes = Some(memory("--available-kv", size)?);
    }
    if let Some(size) = &args.free_gpu_memory {
        let free = memory("--free-gpu-memory", size)?;
        if free > q.placed.gpu.total_bytes {
            let why =
                format!("{} exceeds the card's total of {}", Bytes(free), Bytes(q.placed.gpu.total_bytes));
            return Err(Failure::Flag { flag: "--free-gpu-memory", why });
        }
        q.line.launch.free_gpu_bytes = Some(free);
    }
    let (measured, known) = residual(&q, &args.launch, Some(&q.placed))?;
    let given = q.line.launch.available_kv_bytes.is_some() || q.line.launch.kv_cache_memory_bytes.is_some();
    let mut a = answer(&q.named, &q.line, &q.placed, known.as_ref().filter(|_| !given))?;
    a.measured = measured;
    let text = match (args.emit, args.output) {
        (Some(EmitWhat::Flags), _) => report::emit(&a, report::Emit::Flags),
        (Some(EmitWhat::Resources), _) => report::emit(&a, report::Emit::Resources),
        (Some(EmitWhat::Values), _) => report::emit(&a, report::Emit::Values),
        (None, PlanFormat::Text) => report::plan_text(&a, output::style(args.color, args.verbose)),
        (None, PlanFormat::Json) => report::json(&a)?,
        (None, PlanFormat::Yaml) => report::yaml(&a)?,
        (None, PlanFormat::Markdown) => report::plan_markdown(&a),
        (None, PlanFormat::Svg) => report::plan_svg(&a),
    };
    output::write(&text)?;
    Ok(match &a.plan {
        Err(_) => exit::UNSUPPORTED,
        Ok(_) if args.exit_code => exit::of_plan(a.verdict()),
        Ok(_) => exit::OK,
    })
}

/// A start-up beside its prediction, and the residual that is read or, with a start-up, written.
pub(super) fn residual<P>(
    q: &Question<P>,
    args: &LaunchArgs,
    placed: Option<&Placed>,
) -> Result<(Vec<Measured>, Option<Calibration>), Failure> {
    let mut measured = Vec::new();
    let mut known = None;
    if let (Some(log), Some(placed)) = (&q.log, placed) {
        let launch = &log.line.launch;
        let gpu = &placed.gpu;
        let predicted = plan(&q.named.model, launch, gpu)?;
        let from_pool: Option<Plan> = log
            .printed
            .pool
            .map(|p| plan(&q.named.model, &Launch { available_kv_bytes: Some(p), ..launch.clone() }, gpu))
            .transpose()?;
        measured = compare(&predicted, from_pool.as_ref(), &log.printed);
        if let Some(pool) = log.printed.pool {
            let residual = Calibration::of(&predicted, launch, gpu, pool, log.printed.weights);
            if let Some(path) = &args.calibration {
                calibration::write(path, &residual)?;
                output::note(&format!("saved the calibration to {}", path.display()));
            }
            known = Some(residual);
        } else if args.calibration.is_some() {
            return Err(Failure::Flag {
                flag: "--from-log",
                why: "the log contains no KV cache size, so there is nothing to calibrate with".into(),
            });
        }
    } else if let (None, Some(path)) = (&q.log, &args.calibration) {
        known = Some(calibration::read(path)?);
    }
    Ok((measured, known))
}

/// A size on the command line.
pub(super) fn memory(flag: &'static str, text: &str) -> Result<u64, Failure> {
    let why = |what: &str| Failure::Flag {
        flag,
        why: format!(
            "`{text}` {what}; use a form such as \
    79.18GiB"
        ),
    };
    let Bytes(bytes) = parse_memory(text, None).filter(|b| b.0 > 0).ok_or_else(|| why("is no size"))?;
    // A number without its unit would be bytes, which nobody means here.
    if text.trim().parse::<f64>().is_ok() && bytes < MIB {
        return Err(why("has no unit"));
    }
    Ok(bytes)
}
