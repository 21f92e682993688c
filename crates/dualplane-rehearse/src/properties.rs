//! What holds for all requests and all pools.

use proptest::prelude::*;

use crate::{Group, Keeps, Outcome, Policy, Prefix, Request, Settings, StepTime, rehearse};

const TIME: StepTime = StepTime { base: 0.01, token: 1e-5, request: 1e-5, context: 1e-8 };

fn a_request() -> impl Strategy<Value = Request> {
    let prefix =
        prop::option::of((0..3_u32, 1..200_u32).prop_map(|(group, tokens)| Prefix { group, tokens }));
    let session = prop::option::weighted(0.2, 0..4_u32);
    let cancel = prop::option::weighted(0.1, 0.0..5.0_f64);
    let cancel_tokens = prop::option::weighted(0.1, 1..40_u32);
    (0.0..3.0_f64, 1..400_u32, 1..150_u32, prefix, session, (cancel, cancel_tokens), -1..2_i32).prop_map(
        |(at, input, output, prefix, session, (cancel, cancel_tokens), priority)| Request {
            at,
            input,
            output,
            prefix,
            session,
            cancel,
            cancel_tokens,
            priority,
            tenant: 0,
        },
    )
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    prop::collection::vec(a_request(), 1..30).prop_map(|mut all| {
        all.sort_by(|a, b| a.at.total_cmp(&b.at));
        all
    })
}

prop_compose! {
    fn some_settings()(
        blocks in 1..120_u32,
        block_size in prop::sample::select(vec![1_u32, 8, 16, 64]),
        window in prop::option::weighted(0.2, 1..100_u32),
        max_num_seqs in 1..40_u32,
        max_num_batched_tokens in 1..700_u32,
        max_model_len in 1..600_u32,
        long in prop::sample::select(vec![0_u32, 0, 30]),
        flags in prop::array::uniform5(any::<bool>()),
        watermark_blocks in prop::sample::select(vec![0_u32, 0, 2]),
    ) -> Settings {
        let [chunked, whole, caching, priority, asynchronous] = flags;
        let mut groups = vec![Group { block_size, keeps: Keeps::All }];
        groups.extend(window.map(|w| Group { block_size, keeps: Keeps::Window(w) }));
        Settings {
            blocks,
            groups,
            max_num_seqs,
            // Without chunks a step must hold the longest prompt, which the engine checks.
            max_num_batched_tokens: if chunked { max_num_batched_tokens } else { max_model_len },
            max_model_len,
            long_prefill_token_threshold: long,
            chunked_prefill: chunked,
            whole_prompt_must_fit: whole,
            watermark_blocks,
            prefix_caching: caching,
            unnamed_first: block_size != 8,
            policy: if priority { Policy::Priority } else { Policy::Fcfs },
            asynchronous,
            cells: None,
        }
    }
}

fn play(s: &Settings, requests: &[Request]) -> Outcome {
    rehearse(s, requests, &TIME, |_, _, _| {})
}

/// Blocks that one request needs at most when it is alone.
fn alone(s: &Settings, r: &Request) -> u32 {
    s.groups.iter().map(|g| r.total().div_ceil(g.block_size)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// The pool is never overdrawn, a step never overfilled, and nobody runs beyond the limit.
    #[test]
    fn limits_hold_at_every_step(s in some_settings(), requests in requests()) {
        let mut bad = Vec::new();
        let found = rehearse(&s, &requests, &TIME, |_, step, now| {
            let sum = step.asleep + step.scheduled.iter().map(|e| e.tokens).sum::<u32>();
            if now.used() > s.usable() || step.tokens > s.max_num_batched_tokens || now.running() > s.max_num_seqs || sum != step.tokens {
                bad.push((now.used(), step.tokens, now.running()));
            }
        });
        prop_assert!(bad.is_empty(), "{bad:?}");
        prop_assert!(found.peak_blocks <= s.usable() && found.peak_gauge_blocks <= found.peak_blocks);
    }

    /// Every request ends, or is told.
    #[test]
    fn nobody_is_lost(s in some_settings(), requests in requests()) {
        let o = play(&s, &requests);
        prop_assert_eq!(o.finished + o.rejected + o.cancelled + o.stuck, requests.len() as u64);
        prop_assert_eq!(o.stuck > 0, o.stuck_at.is_some());
        if let Some(first) = o.stuck_at.filter(|_| s.policy == Policy::Fcfs) {
            // Only who does not fit alone waits for ever.
            prop_assert!(alone(&s, &requests[first as usize]) > s.usable());
        }
    }

    /// Where the longest request fits alone, as the engine makes sure when it starts, everybody is answered.
    #[test]
    fn a_pool_for_one_is_enough_for_all(s in some_settings(), requests in requests()) {
        let one = s.groups.iter().map(|g| s.max_model_len.div_ceil(g.block_size)).sum::<u32>();
        let s = Settings { blocks: s.blocks.max(one + 1), ..s };
        prop_assert_eq!(play(&s, &requests).stuck, 0);
    }

    /// What is computed is what was asked for, less what stood in the cache, and what preemptions undid again.
    #[test]
    fn tokens_are_conserved(s in some_settings(), requests in requests()) {
        let requests: Vec<Request> = requests.into_iter().map(|r| Request { cancel: None, cancel_tokens: None, ..r }).collect();
        let one = s.groups.iter().map(|g| s.max_model_len.div_ceil(g.block_size)).sum::<u32>();
        let s = Settings { blocks: s.blocks.max(one + 1), ..s };
        let o = play(&s, &requests);
        let taken = |r: &&Request| r.total() <= s.max_model_len;
        let output: u64 = requests.iter().filter(taken).map(|r| u64::from(r.output)).sum();
        prop_assert_eq!(o.output_tokens, output);
        // The last token of an answer is never computed: nothing follows it.
        let asked: u64 = requests.iter().filter(taken).map(|r| u64::from(r.total() - 1)).sum();
        // As the engine does, what stands in the cache is counted for who comes the first time, so nothing is known of who was
        // preempted and found there what another had computed meanwhile.
        prop_assert!(o.computed_tokens + o.cached_tokens >= asked || (s.prefix_caching && o.preemptions > 0));
        if o.preemptions == 0 {
            prop_assert_eq!(o.computed_tokens + o.cached_tokens, asked);
        }
    }

    /// Who sleeps does what it would have done awake, at every step.
    #[test]
    fn sleeping_changes_nothing(s in some_settings(), requests in requests(), few in any::<bool>()) {
        // Steps with room for everybody are those in which requests sleep.
        let s = if few { s } else { Settings { max_num_batched_tokens: 2_000, policy: Policy::Fcfs, ..s } };
        let played = |restless: bool| {
            crate::vllm::sleep::RESTLESS.set(restless);
            let mut steps = Vec::new();
            let o = rehearse(&s, &requests, &TIME, |at, step, now| {
                steps.push((at.to_bits(), now.used(), now.running(), now.waiting(), now.waiting_tokens(), step.tokens, step.context, step.preempted));
            });
            crate::vllm::sleep::RESTLESS.set(false);
            (o, steps)
        };
        prop_assert_eq!(played(false), played(true));
    }

    /// The same requests give the same answer.
    #[test]
    fn it_is_repeatable(s in some_settings(), requests in requests()) {
        prop_assert_eq!(play(&s, &requests), play(&s, &requests));
    }

    /// With room for all of them at once nobody is preempted, and nobody waits for blocks.
    #[test]
    fn an_ample_pool_preempts_nobody(s in some_settings(), requests in requests()) {
        let all: u32 = requests.iter().map(|r| alone(&s, r)).sum();
        let s = Settings { blocks: all + s.watermark_blocks + 2, ..s };
        let o = play(&s, &requests);
        prop_assert_eq!((o.preemptions, o.stuck), (0, 0));
    }
}

/// By priority, the first of those that run may be the one that gives way: the others go on in the next step.
#[test]
fn who_gives_way_first_stops_nobody() {
    let s = Settings {
        policy: Policy::Priority,
        max_num_seqs: 2,
        max_model_len: 248,
        asynchronous: false,
        ..Settings::plain(249, 1)
    };
    let of = |at: f64, input: u32, output: u32, priority: i32| Request {
        at,
        input,
        output,
        priority,
        ..Request::default()
    };
    let o = play(&s, &[of(0.0, 12, 63, 0), of(0.364, 151, 26, -1)]);
    assert_eq!((o.finished, o.stuck, o.preemptions > 0), (2, 0, true));
}

/// Who never fits is named, though it is on its way again when the last of the others hangs up.
#[test]
fn who_starts_again_for_ever_is_named() {
    let s = Settings {
        max_num_seqs: 1,
        max_num_batched_tokens: 21,
        prefix_caching: false,
        whole_prompt_must_fit: false,
        asynchronous: false,
        ..Settings::plain(14, 16)
    };
    let of = |at: f64, input: u32, output: u32, cancel: Option<f64>| Request {
        at,
        input,
        output,
        cancel,
        ..Request::default()
    };
    // 209 tokens need 14 blocks of 13; the last two hang up one after the other, while it starts once more.
    for wait in 0..40 {
        let late = 8.0 + 0.02 * f64::from(wait);
        let o = play(
            &s,
            &[
                of(0.0, 185, 25, None),
                of(0.3, 69, 60, None),
                of(0.4, 50, 25, Some(8.0)),
                of(0.4, 50, 25, Some(late)),
            ],
        );
        assert_eq!((o.finished, o.cancelled, o.stuck, o.stuck_at), (0, 2, 2, Some(0)), "{wait}");
    }
    // Once it hangs up itself, the next one gets its answer.
    let o = play(&s, &[of(0.0, 185, 25, Some(9.0)), of(0.3, 69, 60, None)]);
    assert_eq!((o.finished, o.cancelled, o.stuck, o.stuck_at), (1, 1, 0, None));
}
