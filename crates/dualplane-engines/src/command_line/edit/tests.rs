//! What is changed and what stays, in all forms in which a flag is given.

use proptest::prelude::*;

use super::*;

fn list(words: &[&str]) -> Vec<String> {
    words.iter().map(|w| (*w).to_owned()).collect()
}

fn invocation(command: &[&str], args: &[&str], env: &[(&str, &str)]) -> Invocation {
    let of = |(name, value): &(&str, &str)| Variable {
        name: (*name).to_owned(),
        value: Some((*value).to_owned()).filter(|v| v != "<elsewhere>"),
    };
    Invocation {
        image: "vllm/vllm-openai:v0.11.2".into(),
        command: list(command),
        args: list(args),
        env: env.iter().map(of).collect(),
        env_from: Vec::new(),
    }
}

fn engine(id: &str) -> &'static Descriptor {
    Engines::embedded().get(id).unwrap()
}

const LENGTH: &[&str] = &["--max-model-len"];

fn set_of(l: &Invocation, id: &str, names: &[&str], to: To<'_>) -> Result<Edited, Unchanged> {
    set(l, &list(names), to, engine(id), Engines::embedded())
}

fn length(l: &Invocation, value: &str) -> Invocation {
    set_of(l, "vllm", LENGTH, To::Value(value)).unwrap().invocation
}

#[test]
fn a_flag_is_changed_where_it_stands() {
    for (args, want) in [
        (
            &["--model", "m", "--max-model-len", "65536", "--port", "1"][..],
            &["--model", "m", "--max-model-len", "8192", "--port", "1"][..],
        ),
        (&["--max_model_len=65536", "--x"], &["--max_model_len=8192", "--x"]),
        // The last one counts.
        (&["--max-model-len", "1", "--max-model-len=2"], &["--max-model-len", "1", "--max-model-len=8192"]),
        // Absent: as its neighbours are written.
        (&["--model=m"], &["--model=m", "--max-model-len=8192"]),
        (&["--model", "m"], &["--model", "m", "--max-model-len", "8192"]),
        (&[], &["--max-model-len", "8192"]),
    ] {
        let got = length(&invocation(&[], args, &[]), "8192");
        assert_eq!(got.args, list(want));
        assert_eq!(got.command, list(&[]));
    }
    let got =
        length(&invocation(&["vllm", "serve", "m", "--max-model-len", "1"], &["--port", "1"], &[]), "8192");
    assert_eq!((got.command.last().unwrap().as_str(), got.args), ("8192", list(&["--port", "1"])));
    let was =
        set_of(&invocation(&[], &["--max-model-len=4"], &[]), "vllm", LENGTH, To::Value("8")).unwrap().was;
    assert_eq!(was.as_deref(), Some("4"));
}

#[test]
fn a_script_keeps_every_other_byte() {
    let script = "#!/bin/bash\nset -euo pipefail   # --max-model-len 1\nexport HF_HOME=/m && exec vllm serve \"${MODEL:-x}\" \\\n    \
        --max-model-len \"65536\" \\\n    --port 8000 2>&1 | tee '/tmp/a b'\n";
    let l = invocation(&["/bin/bash", "-c"], &[script], &[]);
    assert_eq!(length(&l, "8192").args, [script.replace("65536", "8192")]);
    let seqs = set_of(&l, "vllm", &["--max-num-seqs"], To::Value("16")).unwrap().invocation;
    assert_eq!(seqs.args, [script.replace("8000 2>", "8000 --max-num-seqs 16 2>")]);
    let gone = set_of(&l, "vllm", LENGTH, To::Absent).unwrap().invocation;
    assert_eq!(gone.args, [script.replace("    --max-model-len \"65536\" \\\n", " \\\n")]);
    // A word of another command, and of a comment, is not the server's.
    let l = invocation(&["sh", "-c", "a --max-model-len 1; vllm serve m"], &[], &[]);
    assert_eq!(length(&l, "8").command[2], "a --max-model-len 1; vllm serve m --max-model-len 8");
    // Nor is one that only names a folder of the engine's name.
    let l = invocation(
        &["chroot", "/host", "bash", "-c"],
        &["cd /opt/vllm && exec venv/bin/python venv/bin/vllm serve m --max-model-len \"9\" 2>&1"],
        &[],
    );
    assert_eq!(length(&l, "8").args, [l.args[0].replace('9', "8")]);
    for unread in ["vllm serve m <<E\nE", "vllm serve 'm"] {
        let e = set_of(&invocation(&["sh", "-c", unread], &[], &[]), "vllm", LENGTH, To::Value("8"));
        assert_eq!(e, Err(Unchanged::Script));
    }
}

#[test]
fn parameters_of_a_script_are_its_servers() {
    let l = invocation(
        &["sh", "-c", "ulimit -l; exec vllm serve \"$@\"", "--"],
        &["m", "--max-model-len=4"],
        &[],
    );
    assert_eq!(length(&l, "8").args, ["m", "--max-model-len=8"]);
    let l = invocation(&["sh", "-c", "exec vllm serve \"$@\"", "--"], &["m"], &[]);
    assert_eq!(length(&l, "8").args, ["m", "--max-model-len", "8"]);
}

#[test]
fn what_stands_in_a_variable_is_changed_there() {
    let env = |l: Invocation, at: usize| l.env[at].value.clone().unwrap();
    let l = invocation(
        &["sh", "-c", "vllm serve m $VLLM_ARGS"],
        &[],
        &[("VLLM_ARGS", "--port 1  --max-model-len 4 --x")],
    );
    assert_eq!(env(length(&l, "8"), 0), "--port 1  --max-model-len 8 --x");
    let l =
        invocation(&["sh", "-c", "vllm serve m $(VLLM_ARGS)"], &[], &[("VLLM_ARGS", "--max-model-len='4'")]);
    assert_eq!(env(length(&l, "8"), 0), "--max-model-len='8'");
    for args in [&["--max-model-len", "$(LEN)"][..], &["--max-model-len=$(LEN)"]] {
        let l = invocation(&[], args, &[("LEN", "4")]);
        let got = length(&l, "8");
        assert_eq!((got.args.clone(), env(got, 0)), (list(args), "8".into()));
        // Another use of it would change, too; so would nothing, where it comes from elsewhere.
        for l in [
            invocation(&["x"], args, &[("LEN", "4"), ("B", "$(LEN)")]),
            invocation(&[], args, &[("LEN", "<elsewhere>")]),
        ] {
            let got = length(&l, "8");
            assert_eq!(got.env, l.env);
            assert!(
                got.args == list(&["--max-model-len", "8"]) || got.args == list(&["--max-model-len=8"]),
                "{got:?}"
            );
        }
    }
    let l = invocation(&["sh", "-c", "exec vllm serve m --max-model-len=\"$LEN\""], &[], &[("LEN", "4")]);
    assert_eq!(env(length(&l, "8"), 0), "8");
    // A variable that nobody here knows stays, and is named: the flag behind it counts.
    let l = invocation(&["sh", "-c", "vllm serve m ${EXTRA}"], &[], &[("EXTRA", "<elsewhere>")]);
    let got = set_of(&l, "vllm", LENGTH, To::Value("8")).unwrap();
    assert_eq!(
        (got.invocation.command[2].as_str(), got.hidden),
        ("vllm serve m ${EXTRA} --max-model-len 8", list(&["EXTRA"]))
    );
}

#[test]
fn a_setting_may_be_a_variable() {
    let names = &["OLLAMA_NUM_PARALLEL"];
    let of = |l: &Invocation| set_of(l, "ollama", names, To::Value("2"));
    let mut l = invocation(&[], &[], &[("OLLAMA_NUM_PARALLEL", "8"), ("A", "b")]);
    assert_eq!(of(&l).unwrap().was.as_deref(), Some("8"));
    assert_eq!(of(&l).unwrap().invocation.env[0].value.as_deref(), Some("2"));
    l.env.remove(0);
    assert_eq!(of(&l).unwrap().invocation.env[1].name, names[0]);
    // One of another object is overridden.
    l.env[0] = Variable { name: names[0].into(), value: None };
    assert_eq!(of(&l).unwrap().invocation.env, [Variable { name: names[0].into(), value: Some("2".into()) }]);
    // The script's own counts.
    let l = invocation(
        &["sh", "-c", "OLLAMA_NUM_PARALLEL=\"8\" ollama serve"],
        &[],
        &[("OLLAMA_NUM_PARALLEL", "4")],
    );
    assert_eq!(of(&l).unwrap().invocation.command[2], "OLLAMA_NUM_PARALLEL=\"2\" ollama serve");
    assert!(matches!(set_of(&l, "ollama", &["num_ctx"], To::Value("2")), Err(Unchanged::Setting(_))));
    let both = set_of(
        &invocation(&["x"], &[], &[]),
        "tei",
        &["--max-batch-tokens", "MAX_BATCH_TOKENS"],
        To::Value("2"),
    );
    assert_eq!(both.unwrap().name, "MAX_BATCH_TOKENS");
}

#[test]
fn a_flag_is_added_only_where_the_server_takes_it() {
    let mut l = invocation(&[], &[], &[]);
    l.image = "registry.example/team/server:1".into();
    assert!(matches!(set_of(&l, "vllm", LENGTH, To::Value("8")), Err(Unchanged::Entrypoint(_))));
    // Its arguments are the server's flags.
    l.args = list(&["--max-num-seqs", "8"]);
    assert_eq!(length(&l, "8").args.len(), 4);
    let l = invocation(&["/start.sh"], &["a"], &[]);
    assert_eq!(set_of(&l, "vllm", LENGTH, To::Value("8")), Err(Unchanged::NoServer("vLLM".into())));
    let l = invocation(&["sglang", "serve"], &["--max-model-len", "x"], &[]);
    assert!(length(&l, "8").args.contains(&"8".to_owned()));
    for (args, why) in [
        (&["--max-model", "4"][..], Unchanged::Unclear("--max-model".into())),
        (&["--max-model-len", "4", "--api-key", "[redacted:api_key]"], Unchanged::Masked),
        (&["--max-model-len"], Unchanged::Unclear("--max-model-len".into())),
    ] {
        assert_eq!(set_of(&invocation(&[], args, &[]), "vllm", LENGTH, To::Value("8")), Err(why));
    }
    let l = invocation(&["trtllm-serve", "m", "--extra_llm_api_options", "/c.yaml"], &[], &[]);
    assert_eq!(
        set_of(&l, "tensorrt_llm", &["--max_seq_len"], To::Value("8")),
        Err(Unchanged::File("--extra_llm_api_options".into()))
    );
}

/// Words as people write them, and odd ones.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z/.0-9]{1,6}",
        "--[a-z]{2,8}(-[a-z]{1,4})?(=[a-z0-9]{0,4})?",
        Just("it's \"x\" $y".to_owned()),
        Just("a b".to_owned()),
        Just("{\"a\": 1}".to_owned()),
    ]
}

/// A server's invocation in one of its forms, with or without the flag.
fn invocations() -> impl Strategy<Value = Invocation> {
    let flag = prop_oneof![
        Just(vec![]),
        Just(vec!["--max-model-len".to_owned(), "77".to_owned()]),
        Just(vec!["--max_model_len=77".to_owned()]),
    ];
    (proptest::collection::vec(word(), 0..6), flag, 0_usize..6, 0_usize..4).prop_map(
        |(others, flag, at, form)| {
            let mut words = others;
            // A value that would be another flag's is not split off.
            let at = at.min(words.len());
            words.splice(at..at, flag);
            let text = words.iter().map(|w| script::quote(w)).collect::<Vec<_>>().join("  ");
            let args: Vec<&str> = words.iter().map(String::as_str).collect();
            match form {
                0 => invocation(&[], &args, &[]),
                1 => invocation(&["python3", "-m", "vllm.entrypoints.openai.api_server"], &args, &[]),
                2 => invocation(
                    &["bash", "-c"],
                    &[&format!("# it's\ncd /x && exec vllm serve {text} # '\n")],
                    &[],
                ),
                _ => invocation(&["sh", "-c", "vllm serve $(A) --y"], &[], &[("A", &text)]),
            }
        },
    )
}

fn words_of(l: &Invocation) -> Vec<Vec<String>> {
    let all = read::commands(l).unwrap().all;
    all.into_iter().map(|c| c.into_iter().map(|w| w.text).collect()).collect()
}

proptest! {
    #[test]
    fn setting_a_flag_sets_it_and_nothing_else(l in invocations(), value in "[0-9]{1,6}|[a-z']{1,3}") {
        let Ok(once) = set_of(&l, "vllm", LENGTH, To::Value(&value)) else { return Ok(()) };
        prop_assert_eq!(once.invocation.value(&list(LENGTH), Engines::embedded()), Some(value.clone()));
        // Each other word is there as before, in its order.
        let rest = |l: &Invocation| set_of(l, "vllm", LENGTH, To::Absent).map(|e| words_of(&e.invocation));
        prop_assert_eq!(rest(&once.invocation), rest(&l));
        let twice = set_of(&once.invocation, "vllm", LENGTH, To::Value(&value)).unwrap();
        prop_assert_eq!(&twice.invocation, &once.invocation);
        prop_assert_eq!(twice.was, Some(value));
    }

    #[test]
    fn what_was_added_is_taken_out_again(l in invocations(), value in "[0-9]{1,6}") {
        let Ok(once) = set_of(&l, "vllm", LENGTH, To::Value(&value)) else { return Ok(()) };
        let back = match &once.was {
            None => set_of(&once.invocation, "vllm", LENGTH, To::Absent).unwrap().invocation,
            Some(was) => set_of(&once.invocation, "vllm", LENGTH, To::Value(was)).unwrap().invocation,
        };
        prop_assert_eq!(back, l);
    }

    #[test]
    fn no_text_of_a_script_breaks_it(text in "[ -~\n]{0,60}") {
        let script = format!("A=1 vllm serve $A {text}");
        let l = invocation(&["sh", "-c", &script], &[&text], &[("A", &text)]);
        if let Ok(e) = set_of(&l, "vllm", LENGTH, To::Value("8")) {
            prop_assert_eq!(e.invocation.value(&list(LENGTH), Engines::embedded()), Some("8".to_owned()));
        }
        let _ = set_of(&l, "vllm", LENGTH, To::Absent);
    }
}
