//! Machines and launches, one table for each outcome.

use super::*;
use crate::card::embedded;
use crate::host::Checkpoint;
use crate::model::ModelFiles;
use crate::report::preflight as report;
use crate::{Model, Named, catalogue, cli};
use dualplane_base::style::Style;
use dualplane_base::units::{Bytes, GIB, MIB};

const H100: &str = "NVIDIA H100 80GB HBM3";

fn named(id: &str) -> Named {
    let e = catalogue::find(id).unwrap();
    let files =
        ModelFiles { config: e.config(), hf_quant_config: e.hf_quant_config(), ..ModelFiles::default() };
    let (source, files) = ("test".to_owned(), (Model::read(&files).unwrap(), Checkpoint::default()));
    Named { id: id.into(), source, model: files.0, gguf: None, files: files.1 }
}

/// An H100 of which so many MiB are in use.
fn h100(index: u32, used: u64) -> Card {
    Card {
        index,
        uuid: format!("GPU-{index}{index}{index}{index}"),
        name: H100.into(),
        capability: Some((9, 0)),
        total: Some(Bytes(81_559 * MIB)),
        reserved: Some(Bytes(479 * MIB)),
        used: Some(Bytes(used * MIB)),
        free: Some(Bytes((81_080 - used) * MIB)),
        ..Card::default()
    }
}

/// An instance of the card before it.
fn slice(profile: &str, mib: u64) -> Card {
    Card {
        uuid: format!("MIG-{profile}"),
        name: format!("{H100} MIG {profile}"),
        parent: Some(0),
        total: Some(Bytes(mib * MIB)),
        reserved: Some(Bytes(0)),
        used: Some(Bytes(0)),
        free: Some(Bytes(mib * MIB)),
        ..h100(0, 0)
    }
}

fn holder(pid: u32, used: u64, life: Life) -> Holder {
    Holder {
        pid,
        used: Some(Bytes(used * MIB)),
        life,
        comm: Some("VLLM::EngineCor".into()),
        age_seconds: Some(10_000),
        names: None,
        pod_uid: None,
        container_id: None,
    }
}

fn seen(cards: Vec<Card>) -> Seen {
    Seen {
        gpus: Ok(cards),
        driver: Driver { version: Some("570.133.20".into()), cuda: Some((12, 8)) },
        pids: Pids::Host,
        visible: Visible::default(),
        kubernetes: false,
        limit: MemoryLimit::Unlimited { source: "test".into() },
        machine_total: Some(Bytes(512 * GIB)),
        machine_available: Some(Bytes(500 * GIB)),
        shm: Some(Shm { size: Bytes(64 * GIB), used: Bytes(0) }),
    }
}

fn of(command: &str, version: &str, seen: &Seen) -> Preflight {
    let mut line = cli::parse(&[command.to_owned()], &[], None).unwrap();
    if let Some(v) = crate::Version::parse(version) {
        line.launch.version = v;
        line.launch.version_known = true;
    }
    let named = named(line.model.as_deref().unwrap());
    let ask = Ask { named: &named, line: &line, calibration: None, named_card: None };
    check(&Request::Launch(ask), seen, &embedded().unwrap()).unwrap()
}

fn words(p: &Preflight) -> String {
    let f = p.findings.iter().map(|f| f.what.as_str());
    f.chain(p.changes.iter().map(|c| c.change.as_str())).collect::<Vec<_>>().join(" | ")
}

#[test]
fn an_empty_card_is_a_go() {
    for (command, version) in [
        ("vllm serve Qwen/Qwen3-8B", "0.11.0"),
        ("vllm serve Qwen/Qwen3-8B", "0.33.0"),
        ("vllm serve Qwen/Qwen3-8B", "0.8.5"),
        ("vllm serve Qwen/Qwen3-8B --gpu-memory-utilization 0.5", "0.11.0"),
        ("vllm serve Qwen/Qwen3-8B --kv-cache-memory-bytes 20G", "0.11.0"),
        ("python -m sglang.launch_server --model-path Qwen/Qwen3-8B", "0.5.9"),
        ("llama-server -m Qwen/Qwen3-8B-Q4_K_M.gguf -c 8192 -ngl 99", ""),
    ] {
        let mut command = command.to_owned();
        let gguf = command.contains("llama-server");
        if gguf {
            command = command.replace("-Q4_K_M.gguf", "");
        }
        let mut line = cli::parse(&[command], &[], None).unwrap();
        if gguf {
            line.launch.quantization = Some("Q4_K_M".into());
        }
        if let Some(v) = crate::Version::parse(version) {
            (line.launch.version, line.launch.version_known) = (v, true);
        }
        let named = named("Qwen/Qwen3-8B");
        let ask = Ask { named: &named, line: &line, calibration: None, named_card: None };
        let at =
            |used| check(&Request::Launch(ask), &seen(vec![h100(0, used)]), &embedded().unwrap()).unwrap();
        let p = at(4);
        assert_eq!(p.outcome, Outcome::Go, "{version} {:?}", words(&p));
        // Somebody holds all but 2 GiB: no engine starts beside that, and none is said to.
        let p = at(79_000);
        assert_eq!(p.outcome, Outcome::Wait, "{version} {:?}", words(&p));
    }
}

#[test]
fn the_rule_of_the_version_decides_about_a_card_that_is_partly_held() {
    // 30 GiB are held: 49 GiB are free, and Qwen3-8B takes 15 GiB.
    for (command, version, want) in [
        ("vllm serve Qwen/Qwen3-8B", "0.11.0", Outcome::Wait),
        ("vllm serve Qwen/Qwen3-8B --gpu-memory-utilization 0.5", "0.11.0", Outcome::Go),
        ("vllm serve Qwen/Qwen3-8B --gpu-memory-utilization 0.61", "0.11.0", Outcome::Go),
        // Between what it asks for and what it takes itself before it looks: it would fit an empty card.
        ("vllm serve Qwen/Qwen3-8B --gpu-memory-utilization 0.617", "0.11.0", Outcome::Wait),
        // Before 0.9.2 what others hold is subtracted from the pool.
        ("vllm serve Qwen/Qwen3-8B", "0.8.5", Outcome::Go),
        ("python -m sglang.launch_server --model-path Qwen/Qwen3-8B", "0.5.9", Outcome::Wait),
    ] {
        let mut card = h100(0, 30 << 10);
        card.processes = vec![holder(4711, 30 << 10, Life::Runs)];
        let p = of(command, version, &seen(vec![card]));
        assert_eq!(p.outcome, want, "{command} {version}: {}", words(&p));
        if want == Outcome::Wait {
            assert!(p.summary().contains("pid 4711") && p.summary().contains("2 h"), "{}", p.summary());
        }
    }
}

#[test]
fn a_wait_says_what_the_engine_would_print_and_where_else_it_fits() {
    let mut held = h100(0, 40_000);
    held.processes = vec![holder(77, 40_000, Life::Gone)];
    let p = of("vllm serve Qwen/Qwen3-8B", "0.11.0", &seen(vec![held.clone(), h100(1, 2)]));
    assert_eq!(p.outcome, Outcome::Wait);
    let row = &p.gpus[0];
    assert!(row.holders[0].orphan);
    // 40.12 GiB are free, 0.27 of them are its own before it looks.
    assert!(row.message.as_deref().unwrap().starts_with("Free memory on device (39.8"), "{:?}", row.message);
    let changes: Vec<&str> = p.changes.iter().map(|c| c.change.as_str()).collect();
    assert_eq!(changes, ["CUDA_VISIBLE_DEVICES=GPU-1111", "--gpu-memory-utilization 0.49"]);
    // The share that is told is a go.
    let told = of("vllm serve Qwen/Qwen3-8B --gpu-memory-utilization 0.49", "0.11.0", &seen(vec![held]));
    assert_eq!(told.outcome, Outcome::Go, "{}", words(&told));
    assert_eq!(p.gpus[1].outcome, Outcome::Go);
}

#[test]
fn what_never_fits_names_a_change_that_does() {
    let cards = || vec![h100(0, 0), h100(1, 0), h100(2, 0), h100(3, 0)];
    let model = "vllm serve meta-llama/Llama-3.1-70B-Instruct";
    let p = of(model, "0.11.0", &seen(cards()));
    assert_eq!(p.outcome, Outcome::CannotFit);
    let tp = p.changes.iter().find(|c| c.change == "--tensor-parallel-size 4").expect("more cards");
    let fixed = of(&format!("{model} {}", tp.change), "0.11.0", &seen(cards()));
    assert_eq!(fixed.outcome, Outcome::Go, "{}", words(&fixed));
    // Also where it is held: waiting would not help.
    let p = of(model, "0.11.0", &seen(vec![h100(0, 70_000)]));
    assert_eq!(p.outcome, Outcome::CannotFit);

    let long = "vllm serve Qwen/Qwen3-8B --gpu-memory-utilization 0.25";
    let p = of(long, "0.11.0", &seen(vec![h100(0, 0)]));
    assert_eq!(p.outcome, Outcome::CannotFit, "{}", words(&p));
    for c in p.changes.iter().filter(|c| c.change.starts_with("--")) {
        // The last of a flag counts.
        let fixed = of(&format!("{long} {}", c.change), "0.11.0", &seen(vec![h100(0, 0)]));
        assert_eq!(fixed.outcome, Outcome::Go, "{}: {}", c.change, words(&fixed));
    }
    assert!(p.changes.len() >= 2, "{}", words(&p));
}

#[test]
fn too_few_gpus_and_ranks_on_slices() {
    let p = of("vllm serve Qwen/Qwen3-8B -tp 2", "0.11.0", &seen(vec![h100(0, 0)]));
    assert_eq!(p.outcome, Outcome::CannotFit);
    assert!(words(&p).contains("uses 2 GPUs; visible here: 1"), "{}", words(&p));
    assert!(words(&p).contains("nvidia.com/gpu: 2") && words(&p).contains("--tensor-parallel-size 1"));
    // Other nodes may have the rest.
    let command = "vllm serve Qwen/Qwen3-8B -tp 2 --distributed-executor-backend ray";
    assert_eq!(of(command, "0.11.0", &seen(vec![h100(0, 0)])).outcome, Outcome::Unknown);
    let command = "vllm serve Qwen/Qwen3-8B -tp 2 --nnodes 2";
    assert_eq!(of(command, "0.11.0", &seen(vec![h100(0, 0)])).outcome, Outcome::Unknown);
    // A driver that lists none.
    let p = of("vllm serve Qwen/Qwen3-8B", "0.11.0", &seen(vec![]));
    assert_eq!(p.outcome, Outcome::CannotFit, "{}", words(&p));

    let divided = |parts: Vec<Card>| {
        let mut cards = vec![Card { mig: true, ..h100(0, 0) }];
        cards.extend(parts);
        seen(cards)
    };
    let p = of(
        "vllm serve Qwen/Qwen3-0.6B -tp 2",
        "0.11.0",
        &divided(vec![slice("1g.10gb", 9984), slice("2g.20gb", 20_096)]),
    );
    assert_eq!(p.outcome, Outcome::CannotFit);
    assert!(words(&p).contains("2 ranks on MIG instances"), "{}", words(&p));
    let p = of(
        "vllm serve Qwen/Qwen3-0.6B --max-model-len 4096",
        "0.11.0",
        &divided(vec![slice("1g.10gb", 9984)]),
    );
    assert_ne!(p.outcome, Outcome::CannotFit, "{}", words(&p));
    assert_eq!(p.gpus[0].card.as_deref(), Some("H100-80GB:1g.10gb"));
    // A slice that is too small: the smallest larger one on which it starts.
    let p = of("vllm serve Qwen/Qwen3-8B", "0.11.0", &divided(vec![slice("1g.10gb", 9984)]));
    assert_eq!(p.outcome, Outcome::CannotFit);
    assert!(p.changes.iter().any(|c| c.change == "H100-80GB:3g.40gb"), "{}", words(&p));
    let p = of("vllm serve Qwen/Qwen3-8B", "0.11.0", &divided(vec![]));
    assert!(words(&p).contains("a GPU has no instance"), "{}", words(&p));
}

#[test]
fn a_missing_fact_is_never_a_go() {
    let command = "vllm serve Qwen/Qwen3-8B";
    let no_driver = Seen { gpus: Err("NVML is not installed".into()), ..seen(vec![]) };
    for (why, s) in [
        ("no driver", no_driver.clone()),
        ("a silent card", seen(vec![Card { free: None, used: None, ..h100(0, 0) }])),
        ("shared memory", seen(vec![Card { total: None, ..h100(0, 0) }])),
        ("no CUDA", seen(vec![Card { name: "AMD Instinct MI300X".into(), ..h100(0, 0) }])),
        ("no limit", Seen { limit: MemoryLimit::Untold { own: None }, ..seen(vec![h100(0, 0)]) }),
        ("no meminfo", Seen { machine_total: None, ..seen(vec![h100(0, 0)]) }),
    ] {
        let p = of(command, "0.11.0", &s);
        assert_eq!(p.outcome, Outcome::Unknown, "{why}: {}", words(&p));
    }
    // An engine without a plan, and a share that leaves nothing for the engine's own context.
    let tgi = of(
        "text-generation-launcher --model-id deepseek-ai/DeepSeek-V3 --num-shard 1",
        "3.3.0",
        &seen(vec![h100(0, 0)]),
    );
    assert_ne!(tgi.outcome, Outcome::Go, "{}", words(&tgi));
    let all = of("vllm serve Qwen/Qwen3-8B --gpu-memory-utilization 1.0", "0.11.0", &seen(vec![h100(0, 0)]));
    assert_eq!(all.outcome, Outcome::CannotFit, "{}", words(&all));
    let near =
        of("vllm serve Qwen/Qwen3-8B --gpu-memory-utilization 0.995", "0.11.0", &seen(vec![h100(0, 0)]));
    assert_eq!(near.outcome, Outcome::Unknown, "{}", words(&near));
    let known = embedded().unwrap();
    let unclear = Request::Unclear { what: "no model".into(), settle: None };
    assert_eq!(check(&unclear, &seen(vec![h100(0, 0)]), &known).unwrap().outcome, Outcome::Unknown);
}

#[test]
fn cards_of_several_kinds_and_one_that_was_named() {
    // The second cannot do bfloat16, and is not taken.
    let t4 = Card { name: "Tesla T4".into(), capability: Some((7, 5)), ..h100(1, 0) };
    let command = "vllm serve Qwen/Qwen3-8B --dtype bfloat16";
    let p = of(command, "0.11.0", &seen(vec![h100(0, 0), t4.clone()]));
    assert_eq!(p.outcome, Outcome::Go, "{}", words(&p));
    assert!(p.unknown.iter().any(|u| u.settle.contains("CUDA_DEVICE_ORDER")), "{:?}", p.unknown);
    let line = cli::parse(&[command.to_owned()], &[], None).unwrap();
    let (named, known) = (named("Qwen/Qwen3-8B"), embedded().unwrap());
    let ask = Ask { named: &named, line: &line, calibration: None, named_card: None };
    let refused = check(&Request::Launch(ask), &seen(vec![t4]), &known);
    assert!(matches!(refused, Err(PlanError::Contradiction { .. })), "{refused:?}");

    let l4 = crate::card::place(&known, Some("L4"), None).unwrap();
    let ask = Ask { named_card: Some(&l4), ..ask };
    let p = check(&Request::Launch(ask), &seen(vec![h100(0, 0)]), &known).unwrap();
    assert_eq!(p.gpus[0].card.as_deref(), Some("L4"));
    assert!(p.unknown.iter().any(|u| u.what.contains("was named as L4")), "{:?}", p.unknown);
}

#[test]
fn the_machine_alone() {
    let known = embedded().unwrap();
    let of = |s: &Seen| check(&Request::Machine, s, &known).unwrap();
    assert_eq!(of(&seen(vec![h100(0, 3)])).outcome, Outcome::Go);
    let p = of(&Seen { pids: Pids::Own, ..seen(vec![h100(0, 3000)]) });
    assert_eq!(p.outcome, Outcome::Wait);
    assert!(p.summary().contains("not visible from this PID namespace"), "{}", p.summary());
    assert_eq!(of(&seen(vec![])).outcome, Outcome::Unknown);
    assert_eq!(of(&Seen { gpus: Err("x".into()), ..seen(vec![]) }).outcome, Outcome::Unknown);
}

#[test]
fn several_alike_are_told_once_and_hostile_names_are_harmless() {
    let evil = "\u{1b}]0;owned\u{7}\u{202e}";
    let mut cards: Vec<Card> = (0..8).map(|i| h100(i, 60_000)).collect();
    for c in &mut cards {
        c.uuid = format!("{evil}{}", c.index);
        let names = Names { namespace: evil.into(), pod: evil.repeat(100), container: evil.into() };
        c.processes =
            vec![Holder { comm: Some(evil.into()), names: Some(names), ..holder(5, 60_000, Life::Runs) }];
    }
    let s =
        Seen { gpus: Ok(cards), driver: Driver { version: Some(evil.into()), cuda: None }, ..seen(vec![]) };
    let p = of("vllm serve Qwen/Qwen3-8B -tp 8", "0.11.0", &s);
    assert_eq!((p.outcome, p.findings.len()), (Outcome::Wait, 1), "{}", words(&p));
    assert!(p.summary().starts_with("GPU 0, GPU 1, "), "{}", p.summary());
    for verbose in [false, true] {
        let text = report::text(&p, Style { colour: false, verbose, width: 100 });
        assert!(!text.chars().any(|c| c.is_control() && c != '\n' || c == '\u{202e}'), "{text:?}");
    }
    let json = report::json(&p).unwrap();
    assert!(!json.contains('\u{202e}') && !json.contains('\u{7}'));
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&json).unwrap()["gpus"][7]["holders"][0]["name"],
        evil
    );
}
