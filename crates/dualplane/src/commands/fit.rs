//! `dualplane fit`: settings and cards that hold a workload.

use dualplane_core::knowledge::KnowledgeError;
use dualplane_plan::card;
use dualplane_plan::card::place;
use dualplane_plan::fit::{Template, Workload, alternatives, fit};
use dualplane_plan::report::plan as report;
use dualplane_plan::{EngineKind, Gpu, PlanError};

use super::Failure;
use super::plan::Question;
use crate::args::{FitArgs, FitFormat, TemplateName};
use crate::exit::{self, Code};
use crate::output;

/// No request is longer.
const MAX_TOKENS: u64 = 1 << 32;
/// Nobody asks for more at once of one server.
const MAX_REQUESTS: u64 = 4096;

pub(crate) fn run(args: &FitArgs) -> Result<Code, Failure> {
    let q = Question::of_model(&args.launch, None)?;
    let launch = &q.line.launch;
    if launch.engine != EngineKind::Vllm {
        return Err(PlanError::Unsupported { what: format!("GPU memory of {}", launch.engine) }.into());
    }
    let input = Tokens::parse("--input-tokens", &args.input_tokens)?;
    let outcome = Tokens::parse("--output-tokens", &args.output_tokens)?;
    if args.concurrency == 0 || args.concurrency > MAX_REQUESTS {
        return Err(Failure::Flag {
            flag: "--concurrency",
            why: format!(
                "must be between 1 and \
        {MAX_REQUESTS}"
            ),
        });
    }
    let ask = Workload {
        usual_tokens: input.usual + outcome.usual,
        longest_tokens: input.longest + outcome.longest,
        concurrency: args.concurrency,
        template: match args.template {
            TemplateName::Safe => Template::Safe,
            TemplateName::Performance => Template::Performance,
        },
    };
    let model = &q.named.model;
    if ask.longest_tokens > model.max_model_len {
        let why = format!("{} tokens exceed the model's {}", ask.longest_tokens, model.max_model_len);
        return Err(Failure::Flag { flag: "--input-tokens", why });
    }
    let here = match &q.placed {
        Some(p) => Some(fit(model, launch, &p.gpu, &ask)?),
        None => None,
    };
    // Cards whose totals were measured: what a bound rests on.
    let cards = card::embedded().map_err(KnowledgeError::from)?;
    let known: Vec<Gpu> = cards
        .iter()
        .filter(|c| c.torch_total_gib.is_some())
        .filter_map(|c| place(&cards, Some(&c.id), None).ok())
        .map(|p| p.gpu)
        .collect();
    let others = alternatives(model, launch, &known, &ask);
    let version = if launch.version_known { String::new() } else { " (assumed)".to_owned() };
    let r = report::FitReport {
        model: &q.named.id,
        engine: format!("{} {}{version}", launch.engine, launch.version),
        workload: ask,
        here: here.as_ref(),
        alternatives: &others,
    };
    let text = match args.output {
        FitFormat::Text => report::fit_text(&r, output::style(args.color, args.verbose)),
        FitFormat::Json => report::fit_json(&r)?,
        FitFormat::Markdown => report::fit_markdown(&r),
    };
    output::write(&text)?;
    Ok(exit::OK)
}

/// `p50=1000,p99=8000`, or one number for both.
struct Tokens {
    usual: u64,
    longest: u64,
}

impl Tokens {
    fn parse(flag: &'static str, text: &str) -> Result<Self, Failure> {
        let wrong =
            |what: &str| Failure::Flag { flag, why: format!("{what}; use p50=1000,p99=8000 or one number") };
        let number = |t: &str| {
            t.trim()
                .parse::<u64>()
                .ok()
                .filter(|n| *n <= MAX_TOKENS)
                .ok_or_else(|| wrong(&format!("`{t}` is not a number of tokens")))
        };
        if !text.contains('=') {
            let n = number(text)?;
            return Ok(Self { usual: n, longest: n });
        }
        let (mut usual, mut longest) = (None, None);
        for part in text.split(',') {
            match part.split_once('=').map(|(k, v)| (k.trim(), v)) {
                Some(("p50", v)) => usual = Some(number(v)?),
                Some(("p99" | "max", v)) => longest = Some(number(v)?),
                _ => return Err(wrong(&format!("`{part}` is neither p50 nor p99"))),
            }
        }
        let longest = longest.or(usual).ok_or_else(|| wrong("nothing is given"))?;
        let usual = usual.unwrap_or(longest);
        if usual > longest {
            return Err(wrong("p50 is above p99"));
        }
        Ok(Self { usual, longest })
    }
}
