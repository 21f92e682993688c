//! What holds for every source: no text comes out, no input breaks it, and where a source is cut into pieces does not matter.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::*;

fn counted(pieces: &[&[u8]]) -> (Option<String>, Vec<String>) {
    let mut p = Profiler::new(dualplane_shape::LONG);
    p.begin("source");
    pieces.iter().for_each(|b| p.feed(b));
    match p.shape(&Options::default()) {
        Ok((shape, notes)) => (Some(shape.json().unwrap()), notes),
        Err(_) => (None, Vec::new()),
    }
}

/// Lines of every kind of source with a text of a user in them.
fn lines(text: &str) -> Vec<String> {
    let quoted = serde_json::to_string(text).unwrap();
    vec![
        format!(
            r#"{{"messages":[{{"role":"user","content":{quoted}}}],"usage":{{"prompt_tokens":11,"completion_tokens":5}}}}"#
        ),
        format!(r#"{{"custom_id":{quoted},"body":{{"prompt":{quoted},"max_tokens":10}}}}"#),
        format!(
            "2026-06-18T09:00:00Z tenant={text} prompt={quoted} input_tokens=11 output_tokens=5 user={quoted}"
        ),
        format!(
            "INFO 06-18 09:00:00 [logger.py:43] Received request {text}-1: prompt: {quoted}, params: SamplingParams(n=1, max_tokens=120), prompt_token_ids: [1, 2], lora_request: None."
        ),
        format!(
            "[2026-06-18 09:00:02] Finish: obj=GenerateReqInput(text={quoted}), out={{'text': {quoted}, 'meta_info': {{'finish_reason': {{'type': 'stop'}}, 'prompt_tokens': 5, 'completion_tokens': 16}}}}"
        ),
        format!(
            r#"{{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"tenant","value":{{"stringValue":{quoted}}}}}]}},"scopeSpans":[{{"spans":[{{"attributes":[{{"key":"gen_ai.usage.input_tokens","value":{{"intValue":"3"}}}},{{"key":"gen_ai.usage.output_tokens","value":{{"intValue":"3"}}}},{{"key":"gen_ai.prompt","value":{{"stringValue":{quoted}}}}}]}}]}}]}}]}}"#
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_text_of_a_user_comes_out(word in "[Q-Z]{9}[a-z \"'\\\\{}=:,\u{202e}é]{0,30}") {
        let all: String = lines(&word).into_iter().map(|l| l + "\n").collect();
        let (json, notes) = counted(&[all.as_bytes()]);
        let told = format!("{json:?} {notes:?}");
        prop_assert!(json.is_some());
        prop_assert!(!told.contains(&word[..9]), "{told}");
        // A table whose fields hold it.
        let table = format!("input_tokens,output_tokens,tenant\n5,6,\"{}\"\n", &word[..9]);
        let (json, _) = counted(&[table.as_bytes()]);
        prop_assert!(json.is_some_and(|j| !j.contains(&word[..9])));
    }

    #[test]
    fn no_bytes_break_it(bytes in vec(any::<u8>(), 0..600), picked in vec((0_usize..6, 0_usize..300), 0..6)) {
        let mut text = Vec::new();
        for (which, cut) in picked {
            let line = lines("x")[which].clone();
            text.extend_from_slice(&line.as_bytes()[..cut.min(line.len())]);
            text.push(b'\n');
        }
        text.extend_from_slice(&bytes);
        counted(&[&text]);
        for head in ["input_tokens,output_tokens\n", "# TYPE vllm:request_prompt_tokens histogram\n", "{\n", "[\n"] {
            counted(&[head.as_bytes(), &text]);
        }
    }

    #[test]
    fn where_a_source_is_cut_does_not_matter(inputs in vec((1_u64..50_000, 1_u64..3_000), 1..40), cuts in vec(0_usize..4_000, 0..8)) {
        let text: String = inputs.iter().enumerate()
            .map(|(i, (a, b))| format!("2026-06-18T09:00:{:02}Z input_tokens={a} output_tokens={b}\r\n", i % 60)).collect();
        let whole = counted(&[text.as_bytes()]);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|w| &text.as_bytes()[w[0]..w[1]]).collect();
        prop_assert_eq!(&whole, &counted(&pieces));
    }

    #[test]
    fn counts_and_means_are_kept(inputs in vec((0_u64..500_000, 0_u64..30_000), 1..200)) {
        let mut p = Profiler::new(dualplane_shape::LONG);
        p.begin("table");
        p.feed(b"input_tokens,output_tokens\n");
        for (a, b) in &inputs {
            p.feed(format!("{a},{b}\n").as_bytes());
        }
        let (shape, _) = p.shape(&Options::default()).unwrap();
        let n = inputs.len() as f64;
        prop_assert_eq!(shape.counted, Some(inputs.len() as u64));
        prop_assert_eq!(shape.requests.iter().map(|r| r.weight).sum::<f64>(), n);
        let mean = inputs.iter().map(|(a, _)| *a as f64).sum::<f64>() / n;
        let got = shape.requests.iter().map(|r| r.input as f64 * r.weight).sum::<f64>() / n;
        prop_assert!((mean - got).abs() <= 0.5 + mean * 1e-9, "{} {}", mean, got);
    }
}
