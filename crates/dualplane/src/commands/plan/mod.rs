//! `dualplane plan`: how a model server's memory will divide, before it runs.

mod calibration;
mod lists;
mod question;
pub(crate) mod shape;
mod table;

pub(super) use question::Question;

use dualplane_base::units::{Bytes, MIB, parse_memory};
use dualplane_plan::card::Placed;
use dualplane_plan::catalogue::parameters;
use dualplane_plan::edges::{beyond_a_machine, edges};
use dualplane_plan::report::plan as report;
use dualplane_plan::rough::{models, together};
use dualplane_plan::{
    Answer, Calibration, EngineKind, Launch, Measured, Named, Plan, PlanError, Verdict, Version, answer,
    compare, pasteable, plan,
};

use super::Failure;
use crate::args::{EmitWhat, LaunchArgs, PlanArgs, PlanFormat};
use crate::exit::{self, Code};
use crate::output;

pub(crate) fn run(args: &PlanArgs) -> Result<Code, Failure> {
    if let Some(text) = lists::asked(args)? {
        output::write(&text)?;
        return Ok(exit::OK);
    }
    let traffic = shape::asked(args)?;
    let rough = rough(args)?;
    let open = Question::of_model(&args.launch, rough.as_ref().map(|[_, usual, _]| usual.clone()))?;
    let Some(placed) = open.placed.clone() else { return table::run(args, &open) };
    let mut q = Question { line: open.line, named: open.named, placed, log: open.log };
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
    let known = known.as_ref().filter(|_| !given);
    if let Some(what) = args.emit {
        output::write(&paste(&q, what, known)?)?;
        return Ok(exit::OK);
    }
    let mut a = answer(&q.named, &q.line, &q.placed, known)?;
    if let Some([few, _, many]) = &rough {
        let at = |named| answer(named, &q.line, &q.placed, known);
        a = together(&at(few)?, a, &at(many)?);
    }
    a.measured = measured;
    let edges = edges(&q.named, &q.line, &q.placed, &a, traffic);
    let text = match args.output {
        PlanFormat::Text => report::plan_text(&a, &edges, output::style(args.color, args.verbose)),
        PlanFormat::Json => report::json(&a, &edges)?,
        PlanFormat::Yaml => report::yaml(&a, &edges)?,
        PlanFormat::Markdown => report::plan_markdown(&a, &edges),
        PlanFormat::Svg => report::plan_svg(&a),
    };
    output::write(&text)?;
    let ending = a.stages.ending.as_ref().filter(|e| e.verdict == Verdict::Refused);
    let class = ending.map(|e| e.class);
    Ok(match &a.plan {
        // A kill by the kernel needs no GPU plane to be certain.
        _ if args.exit_code && class.is_some() => exit::of_plan(Verdict::Refused, class),
        Err(_) => exit::UNSUPPORTED,
        Ok(_) if args.exit_code => exit::of_plan(a.verdict(), class),
        Ok(_) => exit::OK,
    })
}

/// What `--emit` prints holds, or nothing is printed.
fn paste(q: &Question, what: EmitWhat, known: Option<&Calibration>) -> Result<String, Failure> {
    let what = match what {
        EmitWhat::Flags => report::Emit::Flags,
        EmitWhat::Resources => report::Emit::Resources,
        EmitWhat::Values => report::Emit::Values,
        EmitWhat::Manifest => report::Emit::Manifest,
        EmitWhat::Statefulset => report::Emit::StatefulSet,
    };
    let host_only = matches!(what, report::Emit::Resources);
    match pasteable(&q.named, &q.line, &q.placed, known) {
        Ok(found) => {
            for change in &found.changed {
                output::note(&format!("what was asked does not hold at the lower bound: {change}"));
            }
            if matches!(what, report::Emit::Manifest | report::Emit::StatefulSet) {
                object_of(&found.answer, what)?;
            }
            Ok(report::emit(&found.answer, what))
        }
        // RAM is known where the GPU plane is not.
        Err(PlanError::Unsupported { .. } | PlanError::Missing { .. }) if host_only => {
            let a = answer(&q.named, &q.line, &q.placed, known)?;
            if a.plan.is_ok() {
                return Err(pasteable(&q.named, &q.line, &q.placed, known)
                    .err()
                    .map_or_else(nothing, refused));
            }
            Ok(report::emit(&a, what))
        }
        Err(e) => Err(refused(e)),
    }
}

/// The reason alone, where it is no lack of knowledge.
fn refused(e: PlanError) -> Failure {
    match e {
        PlanError::Unsupported { what } if what.starts_with("nothing to paste") => Failure::NotPasted(what),
        e => e.into(),
    }
}

fn nothing() -> Failure {
    PlanError::unsupported("nothing to paste").into()
}

/// The first release whose own executor joins pods (`--nnodes`, pull request 23691).
const NODES: Version = Version(0, 13, 0);

/// A Deployment or StatefulSet holds one pod of one engine; pods that serve one model together are a group.
fn object_of(a: &Answer, what: report::Emit) -> Result<(), Failure> {
    let l = &a.line.launch;
    let pods = a.line.pods();
    let no = |what: String| Err(PlanError::unsupported(what).into());
    if let Some((gpus, most, Some(machine))) = beyond_a_machine(&a.line, &a.gpu.name) {
        return Err(Failure::NotPasted(format!(
            "nothing to paste: each pod would ask for {gpus} GPUs and stay Pending, because no machine with this card has more \
             than {most} ({machine})"
        )));
    }
    if l.engine != EngineKind::Vllm {
        return no(format!("a manifest for {}; --emit resources prints what its container needs", l.engine));
    }
    if pods == 1 {
        return Ok(());
    }
    if matches!(what, report::Emit::StatefulSet) {
        return no(format!(
            "a StatefulSet for {pods} pods that serve one model; --emit manifest prints a LeaderWorkerSet"
        ));
    }
    let copies = a.line.host.local_copies.is_some_and(|n| n < l.dp);
    if !copies && (a.line.host.nodes < 2 || l.version < NODES) {
        return no(format!(
            "a manifest for {pods} pods that Ray joins; vLLM {NODES} and later join them by --nnodes {pods}, and --emit \
             resources prints what each pod needs"
        ));
    }
    Ok(())
}

/// `--params 14B --layers 40`: three models of that size.
fn rough(args: &PlanArgs) -> Result<Option<[Named; 3]>, Failure> {
    let Some(text) = &args.params else { return Ok(None) };
    let n = parameters(text).ok_or_else(|| Failure::Flag {
        flag: "--params",
        why: format!("`{text}` is no number of parameters; use a form such as 14B or 500M"),
    })?;
    let dtype = match args.dtype.to_ascii_lowercase().as_str() {
        "bf16" | "bfloat16" => "bfloat16",
        "fp16" | "float16" | "half" => "float16",
        "fp32" | "float32" | "float" => "float32",
        other => {
            let why = format!(
                "`{other}` is none of bfloat16, float16, float32; use --quantization fp8 in the command"
            );
            return Err(Failure::Flag { flag: "--dtype", why });
        }
    };
    let id = args.launch.model().map_or_else(|| format!("a model of {text}"), str::to_owned);
    Ok(Some(models(&id, n, args.layers, dtype)?))
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
