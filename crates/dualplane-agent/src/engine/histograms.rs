//! What of an engine's page is kept for a bundle beside its counts: how long requests were, and how long they took.

use std::sync::Arc;

/// Words in names of histograms of requests: of vLLM (`request_prompt_tokens`, `request_generation_tokens`,
/// `request_params_max_tokens`, `iteration_tokens_total`, `time_to_first_token_seconds`), SGLang (`prompt_tokens_histogram`,
/// `time_to_first_token_seconds`), TGI (`tgi_request_input_length`, `tgi_request_generated_tokens`).
const WORDS: [&str; 8] = [
    "prompt_tokens",
    "generation_tokens",
    "max_tokens",
    "iteration_tokens",
    "input_length",
    "generated_tokens",
    "max_new_tokens",
    "time_to_first_token",
];
/// Bytes that are kept of one engine; a node has some.
const MAX_BYTES: usize = 64 << 10;

/// The lines of such histograms, whole.
pub(super) fn histograms(page: &str) -> Arc<str> {
    let mut out = String::new();
    for line in page.lines() {
        let name = line.trim_start_matches("# TYPE ").trim_start_matches("# HELP ");
        let name = name.split(['{', ' ']).next().unwrap_or_default();
        if line.starts_with("# HELP") || !WORDS.iter().any(|w| name.contains(w)) {
            continue;
        }
        if out.len() + line.len() >= MAX_BYTES {
            break;
        }
        out.push_str(line);
        out.push('\n');
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_of_requests_are_kept_and_nothing_else() {
        let page = "# HELP vllm:request_prompt_tokens Number of prefill tokens.\n\
            # TYPE vllm:request_prompt_tokens histogram\n\
            vllm:request_prompt_tokens_bucket{le=\"100.0\",model_name=\"m\"} 7.0\n\
            vllm:request_prompt_tokens_sum{model_name=\"m\"} 700.0\n\
            vllm:num_requests_running{model_name=\"max_tokens\"} 1.0\n\
            vllm:time_to_first_token_seconds_count{model_name=\"m\"} 7.0\n";
        let kept = histograms(page);
        assert_eq!(kept.lines().count(), 4, "{kept}");
        assert!(!kept.contains("num_requests_running") && kept.contains("_bucket{le=\"100.0\""));
        let long = "vllm:request_prompt_tokens_bucket{le=\"1\"} 1\n".repeat(9000);
        assert!(histograms(&long).len() <= MAX_BYTES);
    }
}
