//! What stands beside a plan: the cost of a token, edges, two templates, traffic.

use crate::edges::{Edges, Template};
use crate::report::page::Page;
use crate::report::plan::word;
use dualplane_base::units::{Bytes, thousands};

impl Page {
    /// What a token costs, and what all sequences would.
    pub(super) fn cost(&mut self, e: &Edges) {
        let Some(c) = &e.cost else { return };
        let times = match c.demand_tenths {
            0 => String::new(),
            n => format!(", {}.{} times the pool", n / 10, n % 10),
        };
        let text = format!(
            "a token takes {}; all sequences at full length would take {}{times}",
            Bytes(c.token_bytes),
            Bytes(c.demand_bytes),
        );
        self.wrapped(&text, "  ", "  ");
        let text = format!(
            "after the start {} % of the card is taken, {} % without the pool",
            c.after_start_percent, c.without_pool_percent
        );
        self.wrapped(&text, "  ", "  ");
    }

    pub(super) fn edges(&mut self, e: &Edges) {
        if let Some((t, d)) = &e.traffic {
            self.heading(&format!("Traffic  {}: {} requests at once", t.name, thousands(t.concurrency)));
            self.line(&format!(
                "  prompts of {} (p99 {}) and answers of {} (p99 {}) tokens",
                thousands(t.input_p50),
                thousands(t.input_p99),
                thousands(t.output_p50),
                thousands(t.output_p99)
            ));
            self.wrapped(
                &format!(
                    "they take {} tokens at the median, {} at p95 and {} at p99 of {} in the pool, which holds {} of them",
                    thousands(d.p50_tokens),
                    thousands(d.p95_tokens),
                    thousands(d.p99_tokens),
                    thousands(d.pool_tokens),
                    thousands(d.holds)
                ),
                "  ",
                "  ",
            );
            let prefix = match t.prefix_percent {
                0 => String::new(),
                n => format!(", {n} % of the prompts' tokens shared"),
            };
            self.line(&format!("  {} run at once{prefix}", thousands(d.runs)));
            if !t.measured {
                let dim = self.style.dim("  these lengths were not measured: --shape FILE takes your own");
                self.line(&dim);
            }
        }
        if !e.ways.is_empty() {
            self.heading("What would start");
            for way in &e.ways {
                let flags = way.flags.join(" ");
                let text = if flags.is_empty() { way.text.clone() } else { format!("{flags}: {}", way.text) };
                self.wrapped(&text, "  • ", "    ");
            }
        }
        if !e.list.is_empty() {
            self.heading("Edges");
            for edge in &e.list {
                self.wrapped(&edge.text, "  ! ", "    ");
            }
        }
        if let [safe, fast] = e.templates.as_slice() {
            self.heading("Templates");
            self.line(&format!("  {:<28}{:>14}{:>14}", "", safe.name, fast.name));
            let row = |name: &str, of: &dyn Fn(&Template) -> String| {
                format!("  {name:<28}{:>14}{:>14}", of(safe), of(fast))
            };
            for line in [
                row("--gpu-memory-utilization", &|t| t.gpu_memory_utilization.to_string()),
                row("--max-model-len", &|t| t.max_model_len.to_string()),
                row("--max-num-seqs", &|t| t.max_num_seqs.to_string()),
                row("verdict", &|t| word(t.verdict).to_owned()),
            ] {
                self.line(&line);
            }
            for t in [safe, fast] {
                let dim = self.style.dim(&dualplane_base::style::wrap(
                    &format!("{}: {}", t.name, t.why),
                    self.style.width,
                    "  ",
                    "    ",
                ));
                self.line(&dim);
            }
        }
    }
}
