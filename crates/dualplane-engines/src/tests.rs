//! Recognition and inheritance, on the embedded heads.

use super::*;

fn all() -> &'static Engines {
    Engines::embedded()
}

#[test]
fn the_longest_word_of_an_image_counts_and_an_engine_comes_before_its_host() {
    let of =
        |image: &str| all().by_image(image).map(|n| (n.engine.id.as_str(), n.server.id.as_str(), n.alone));
    assert_eq!(of("vllm/vllm-openai:v0.11.2"), Some(("vllm", "vllm", true)));
    assert_eq!(of("x/SGLang-vllm"), Some(("sglang", "sglang", true)));
    assert_eq!(of("nvcr.io/nvidia/tritonserver:25.01-vllm-python-py3"), Some(("vllm", "triton", false)));
    assert_eq!(of("nvcr.io/nvidia/tritonserver:25.01-py3"), Some(("triton", "triton", true)));
    assert_eq!(of("lmcache/vllm-openai:v0.3.9"), Some(("vllm", "vllm", false)));
    assert_eq!(of("nginx"), None);
}

#[test]
fn commands_name_the_engine_and_where_its_arguments_begin() {
    let of = |text: &str| {
        let words = super::command_line::shell(text, &[]).concat();
        all().by_command(&words).map(|(d, at)| (d.id.clone(), at))
    };
    let some = |id: &str, at| Some((id.to_owned(), at));
    assert_eq!(of("env A=1 /usr/bin/vllm serve m"), some("vllm", 4));
    assert_eq!(of("python3 -m vllm.entrypoints.openai.api_server --model m"), some("vllm", 3));
    assert_eq!(of("trtllm-serve serve m"), some("tensorrt_llm", 2));
    assert_eq!(of("trtllm-serve m"), some("tensorrt_llm", 1));
    assert_eq!(of("python3 /x/sglang/launch_server.py --model m"), some("sglang", 2));
    assert_eq!(of("vllm bench"), None);
}

#[test]
fn processes_are_known_as_far_as_the_kernel_prints_them() {
    for name in ["VLLM::EngineCor", "text-embeddings", "pt_main_thread", "ray::RayWorkerW"] {
        assert!(all().serves_models(name), "{name}");
    }
    assert!(!all().serves_models("postgres") && !all().serves_models("mpirun"));
    let own = |id: &str, process: &str| all().may_own(all().get(id), process);
    assert!(own("vllm", "python3") && own("vllm", "ray::worker") && !own("vllm", "ollama"));
    assert!(
        own("llama_cpp", "llama-server") && !own("llama_cpp", "python3"),
        "a native server is no interpreter"
    );
    assert!(own("ollama", "llama-server"), "a runner of the parent's make");
    assert!(all().may_own(None, "orted") && own("triton", "sglang::scheduler"), "a host may run any");
}

#[test]
fn a_derived_engine_takes_what_it_does_not_say() {
    let (llama, ollama) = (all().get("llama_cpp").unwrap(), all().get("ollama").unwrap());
    assert_eq!((&ollama.native, &ollama.plan), (&llama.native, &llama.plan));
    assert_eq!(ollama.flags.layers, ["num_gpu"], "what it has of its own it keeps");
    assert_ne!(ollama.ports, llama.ports);
    assert_eq!(all().get("trtllm").map(|d| d.id.as_str()), Some("tensorrt_llm"));
}

#[test]
fn a_team_s_own_engine_joins_and_replaces() {
    let own = |text: &str| all().with(vec![serde_json::from_str(text).unwrap()]);
    let with = own(r#"{"id": "mine", "name": "Mine", "images": ["my-vllm"]}"#);
    assert_eq!(with.by_image("x/my-vllm:1").unwrap().engine.id, "mine");
    let replaced = own(r#"{"id": "vllm", "name": "V", "images": ["other"]}"#);
    assert!(replaced.by_image("vllm/vllm-openai:1").is_none());
    assert_eq!(replaced.iter().count(), all().iter().count());
    assert!(serde_json::from_str::<Descriptor>(r#"{"id": "x", "name": "x", "imagse": []}"#).is_err());
}
