//! The budget as people read it: a line for each plane.

use super::Budget;
use super::suspects::band;
use dualplane_base::Plane;
use dualplane_base::text::name;
use dualplane_base::units::{Bytes, thousands};
use dualplane_core::verdict::Verdict;
use dualplane_plan::{Launch, Plan};

/// What the launch should take of the plane that ran out; of the other one, too, where a plan knows it.
pub(crate) fn lines(budget: &Budget, verdict: &Verdict) -> Vec<String> {
    let Some(e) = &budget.expected else { return Vec::new() };
    let line = &e.launch.line;
    let model = match &line.model {
        Some(m) if e.launch.model.is_some() => format!("{}, ", name(m)),
        Some(m) => format!("{} (not in the catalogue: --model DIR), ", name(m)),
        None => String::new(),
    };
    let version = if line.launch.version_known {
        line.launch.version.to_string()
    } else {
        "version unknown".to_owned()
    };
    let mut out = Vec::new();
    let plan = &e.host.plan;
    let host =
        format!("host RAM: load peak {}, steady {}", band(plan.load_peak_bytes), band(plan.steady_bytes));
    let held = budget.held.as_ref().map_or_else(String::new, |h| format!("; killed at {}", h.limit));
    let on_host = verdict.class.plane() == Plane::Host;
    if on_host {
        out.push(format!("{host}{held}"));
    }
    out.extend(e.gpu.as_ref().map(|p| vram(p, &line.launch)));
    if !out.is_empty() {
        out.insert(0, format!("{} {version}, {model}by {}", line.launch.engine, e.launch.source));
    }
    out
}

fn vram(plan: &Plan, launch: &Launch) -> String {
    let kv = &plan.gpu.kv_cache;
    let each = if launch.gpus() > 1 { " a GPU" } else { "" };
    let mut said = format!("VRAM: weights {}{each}", band(plan.gpu.weights_bytes));
    if kv.available_bytes.expected > 0 {
        said.push_str(&format!(", KV cache {}", band(kv.available_bytes)));
    }
    if kv.tokens.expected > 0 {
        said.push_str(&format!(" for {} tokens", thousands(kv.tokens.expected)));
    }
    if kv.needed_bytes > 0 {
        said.push_str(&format!(
            "; one request of {} tokens needs {}",
            thousands(kv.max_model_len),
            Bytes(kv.needed_bytes)
        ));
    }
    said
}
