//! What is advised, over all incidents: nothing against the evidence, and a number where the evidence has one.
//!
//! The checks read what is printed, as a person does, and not what the code believes that it rests on.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    missing_docs,
    clippy::disallowed_methods,
    clippy::disallowed_types
)]

mod common;

use common::incidents;
use dualplane_base::Class;
use dualplane_base::units::{Bytes, parse_k8s_memory};
use dualplane_core::evidence::ContainerKind;
use dualplane_core::facts::Maker;
use dualplane_core::knowledge::Knowledge;
use dualplane_report::actions::{Action, Stage};
use dualplane_report::{self as report, Report};

fn reports() -> Vec<(String, Report)> {
    let knowledge = Knowledge::embedded().unwrap();
    let all = incidents().into_iter().flat_map(|(name, files)| {
        let of = report::triage_all(&name, files, Vec::new(), &knowledge);
        of.into_iter().map(move |r| (name.clone(), r))
    });
    all.collect()
}

/// The memory that a patch asks for, as a request.
fn requested(a: &Action) -> Option<Bytes> {
    let patch = a.patch.as_deref()?;
    let (_, rest) = patch.split_once("requests:")?;
    let line = rest.lines().find(|l| l.trim_start().starts_with("memory:"))?;
    parse_k8s_memory(line.split_once(':')?.1.trim().trim_matches('"'))
}

/// `Set FLAG VALUE (from NOW)`: both numbers.
fn from_to(title: &str) -> Option<(f64, f64)> {
    let (head, rest) = title.split_once(" (from ")?;
    let number = |t: &str| t.replace(',', "").parse::<f64>().ok();
    let to = number(head.rsplit(' ').next()?)?;
    Some((number(rest.split(')').next()?)?, to))
}

fn contradictions(r: &Report) -> Vec<String> {
    let mut out = Vec::new();
    let subject = &r.verdict.subject;
    let node = r.bundle.nodes.iter().find(|n| Some(n.name.as_str()) == subject.node.as_deref());
    let room = node.and_then(|n| n.memory_allocatable);
    let limit = dualplane_core::verdict::memory_limit(&r.facts, subject);
    for a in &r.actions {
        let mut say = |why: &str| out.push(format!("{}: {why}", a.title));
        if let Some((from, to)) = from_to(&a.title)
            && (from - to).abs() < f64::EPSILON
        {
            say("sets what is set");
        }
        if let (Some(want), Some(room)) = (requested(a), room)
            && want > room
            && !a.arithmetic.iter().any(|l| l.contains("larger node"))
        {
            say("asks for more than the node has");
        }
        let shown = requested(a).zip(limit);
        if a.stage == Stage::Fix
            && r.verdict.class == Class::HostOomKilled
            && shown.is_some_and(|(want, limit)| want < limit)
            && a.title.contains("limit to at least")
        {
            say("asks for less than was not enough");
        }
        for c in &a.commands {
            if r.facts.maker != Maker::Nvidia && c.contains("nvidia-smi") {
                say("runs a tool of another maker");
            }
            if c.contains(" POD ") && subject.pod.is_some() {
                say("has a placeholder for a pod that is known");
            }
        }
        let sizes: Vec<Bytes> =
            a.title.split_once("needs at least ").into_iter().flat_map(|(_, t)| sizes(t)).collect();
        if let [need, has, ..] = sizes[..]
            && need <= has
        {
            say("needs less than there is");
        }
    }
    let fixes = || r.actions.iter().filter(|a| a.stage == Stage::Fix);
    if fixes().next().is_some_and(|a| a.title.starts_with("Or ")) {
        out.push("the first fix is an alternative to nothing".to_owned());
    }
    // What is not known, or another's, has no settings of vLLM.
    let spoke = r.verdict.trigger.as_ref().map_or("", |t| t.signature.as_str());
    if r.facts.engine.head().is_none() && !spoke.starts_with("vllm.") {
        let flags = ["--gpu-memory-utilization", "--max-num-seqs", "--max-model-len", "vllm:"];
        let told = |a: &&Action| {
            flags.iter().any(|f| a.title.contains(f) || a.commands.iter().any(|c| c.contains(f)))
        };
        out.extend(
            r.actions
                .iter()
                .find(told)
                .map(|a| format!("{}: names a setting of an engine that is not known", a.title)),
        );
    }
    let avoids = |words: &str| r.actions.iter().any(|a| a.stage == Stage::Avoid && a.title.contains(words));
    if avoids("Do not lower the KV cache share")
        && fixes().any(|a| a.title.contains("lower --mem-fraction-static"))
    {
        out.push("lowers the share that it says to keep".to_owned());
    }
    if avoids("Do not quantise") && fixes().any(|a| a.title.contains("quantised checkpoint")) {
        out.push("quantises what it says not to".to_owned());
    }
    out
}

/// `46.41 GiB` in a text.
fn sizes(text: &str) -> Vec<Bytes> {
    let words: Vec<&str> = text.split([' ', ',']).collect();
    words
        .windows(2)
        .filter_map(|w| dualplane_base::units::parse_memory(&format!("{} {}", w[0], w[1]), None))
        .collect()
}

#[test]
fn no_action_stands_against_the_evidence() {
    let mut bad = Vec::new();
    for (name, r) in reports() {
        bad.extend(contradictions(&r).into_iter().map(|c| format!("{name}: {c}")));
    }
    assert!(bad.is_empty(), "{} contradictions:\n{}", bad.len(), bad.join("\n"));
}

/// A contradiction that is planted is found: the checks can fail.
#[test]
fn the_checks_find_what_is_planted() {
    let knowledge = Knowledge::embedded().unwrap();
    let (_, files) = incidents().into_iter().find(|(n, _)| n == "vllm-host-oom-killed-d062").unwrap();
    let mut r = report::triage_all("x", files, Vec::new(), &knowledge).remove(0);
    assert!(contradictions(&r).is_empty());
    for (title, command) in [
        ("Set --max-model-len 4096 (from 4,096)", ""),
        (
            "Give it more: it needs at least 10.00 GiB on this GPU before it can serve, and the GPU has 24.00 GiB",
            "",
        ),
        ("Look", "kubectl get pod POD -n serving"),
        ("Or set less", ""),
    ] {
        let mut planted = r.actions[0].clone();
        planted.title = title.to_owned();
        planted.patch = None;
        planted.commands = vec![command.to_owned()];
        planted.stage = Stage::Fix;
        let kept = std::mem::replace(&mut r.actions, vec![planted]);
        assert_eq!(contradictions(&r).len(), 1, "{title}");
        r.actions = kept;
    }
}

/// A hot card takes its node out of service whatever ended the server; a warm one is none's concern.
#[test]
fn a_hot_card_is_told_and_its_node_cordoned() {
    let knowledge = Knowledge::embedded().unwrap();
    let table = |celsius: u32| {
        format!(
            "+-----------------------------------------------------------------------------------------+\n\
             | NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |\n\
             |-----------------------------------------+------------------------+----------------------+\n\
             |   0  NVIDIA H100 80GB HBM3          On  |   00000000:4A:00.0 Off |                    0 |\n\
             | N/A   {celsius}C    P0             612W /  700W |   70000MiB /  81559MiB |     97%      Default |\n\
             +-----------------------------------------+------------------------+----------------------+\n"
        )
    };
    let csv = |celsius: u32| {
        format!(
            "index, name, uuid, pci.bus_id, memory.total [MiB], memory.used [MiB], memory.free [MiB], temperature.gpu\n0, NVIDIA H100 80GB HBM3, GPU-5fd4f087-86f3-7a43-b711-4771313afc50, 00000000:4A:00.0, 81559 MiB, 70000 MiB, 11559 MiB, {celsius}\n"
        )
    };
    let dcgm = |celsius: u32| {
        format!("DCGM_FI_DEV_GPU_TEMP{{gpu=\"0\",UUID=\"GPU-5fd4f087\",Hostname=\"gpu-1\"}} {celsius}\n")
    };
    for (celsius, told) in [(94, true), (71, false)] {
        for smi in [table(celsius), csv(celsius), dcgm(celsius)] {
            let files = vec![
                dualplane_core::evidence::RawFile::new(
                    "previous.log",
                    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 616.00 MiB.\n",
                ),
                dualplane_core::evidence::RawFile::new("smi.txt", smi),
            ];
            let r = report::triage_all("x", files, Vec::new(), &knowledge).remove(0);
            let cited = r.causes.iter().flat_map(|c| &c.supports).any(|c| c.text.contains("94 °C"));
            let cordon = r.actions.iter().flat_map(|a| &a.commands).any(|c| c.starts_with("kubectl cordon"));
            assert_eq!((cited, cordon), (told, told), "{celsius}");
        }
    }
}

/// A scrape of a whole cluster holds the cards of all nodes: only those of the pod's own, and none where that is not known.
#[test]
fn a_hot_card_of_another_node_is_none_of_this_pods() {
    let knowledge = Knowledge::embedded().unwrap();
    let scrape = "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",Hostname=\"gpu-1\"} 55\nDCGM_FI_DEV_GPU_TEMP{gpu=\"3\",Hostname=\"gpu-2\"} 95\n";
    let pod = |node: &str| {
        format!(
            r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"llm-0","namespace":"serving"}},"spec":{{{node}"containers":[{{"name":"server","image":"vllm/vllm-openai:v0.11.2"}}]}},"status":{{"containerStatuses":[{{"name":"server","restartCount":1,"lastState":{{"terminated":{{"exitCode":137,"reason":"OOMKilled"}}}}}}]}}}}"#
        )
    };
    for (node, told) in [(r#""nodeName":"gpu-1","#, false), (r#""nodeName":"gpu-2","#, true), ("", false)] {
        let file = |name: &str, text: String| dualplane_core::evidence::RawFile::new(name, text);
        let files = vec![file("pod.json", pod(node)), file("m.prom", scrape.to_owned())];
        let r = report::triage_all("x", files, Vec::new(), &knowledge).remove(0);
        let kept_off = r.actions.iter().any(|a| a.title.contains("until GPU 3 is checked"));
        assert_eq!(kept_off, told, "{node}");
    }
}

/// An autoscaler is held where it scales the workload that failed, and no other; a budget is told where a drain would wait.
#[test]
fn an_autoscaler_of_the_workload_is_held() {
    let knowledge = Knowledge::embedded().unwrap();
    let pod = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"llm-6d9f7c5b84-x2lqm","namespace":"serving","ownerReferences":[{"kind":"ReplicaSet","name":"llm-6d9f7c5b84","controller":true}]},"spec":{"nodeName":"gpu-1","containers":[{"name":"server","image":"vllm/vllm-openai:v0.11.2","resources":{"limits":{"memory":"64Gi"}}}]},"status":{"containerStatuses":[{"name":"server","restartCount":1,"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}]}}"#;
    let hpa = |target: &str| {
        format!(
            "NAME      REFERENCE           TARGETS        MINPODS   MAXPODS   REPLICAS   AGE\nllm-hpa   Deployment/{target:<7}  cpu: 12%/80%   1         8         6          12d\n"
        )
    };
    let pdb = "NAME      MIN AVAILABLE   MAX UNAVAILABLE   ALLOWED DISRUPTIONS   AGE\nllm-pdb   1               N/A               0                     12d\n";
    let said = |files: &[(&str, String)], words: &str| {
        let files =
            files.iter().map(|(n, t)| dualplane_core::evidence::RawFile::new(*n, t.clone())).collect();
        let r = report::triage_all("x", files, Vec::new(), &knowledge).remove(0);
        r.actions.iter().any(|a| a.title.contains(words))
    };
    let pod = ("pod.json", pod.to_owned());
    assert!(said(&[pod.clone(), ("hpa.txt", hpa("llm"))], "Hold the autoscaler llm-hpa at 6 of at most 8"));
    assert!(!said(&[pod.clone(), ("hpa.txt", hpa("other"))], "Hold the autoscaler"));
    let xid = "[54120.881204] NVRM: Xid (PCI:0000:4a:00): 79, pid='<unknown>', name=python3, GPU has fallen off the bus.\n";
    let kernel = ("kernel.log", xid.to_owned());
    assert!(said(&[kernel, ("pdb.txt", pdb.to_owned())], "llm-pdb allows no disruption"));
    assert!(!said(&[pod, ("pdb.txt", pdb.to_owned())], "allows no disruption"));
}

/// Of the kills over a container's limit whose launch is known, at least 70 % get a limit or a flag with its arithmetic; and
/// nowhere is measuring the first advice where a limit is known.
#[test]
fn a_host_kill_gets_a_number() {
    let (mut known, mut numbered, mut kills, mut measured_first) = (0, 0, 0, Vec::new());
    for (name, r) in reports() {
        if r.verdict.class != Class::HostOomKilled {
            continue;
        }
        kills += 1;
        let first = r.actions.iter().find(|a| a.stage == Stage::Fix);
        let has_number = |a: &&Action| {
            a.stage == Stage::Fix
                && !a.arithmetic.is_empty()
                && (!a.changes.is_empty() || a.patch.is_some() || requested(a).is_some())
        };
        if first.is_some_and(|a| a.title.contains("measure the peak"))
            && dualplane_core::verdict::memory_limit(&r.facts, &r.verdict.subject).is_some()
        {
            measured_first.push(name);
        }
        if r.budget.expected.is_some() && r.verdict.subject.container_kind == ContainerKind::Main {
            known += 1;
            numbered += usize::from(r.actions.iter().any(|a| has_number(&a)));
        }
    }
    assert!(known >= 15, "{known} of {kills}");
    assert!(numbered * 100 >= known * 70, "{numbered} of {known}");
    assert!(measured_first.len() <= 2, "{measured_first:?}");
}

/// On machines with one pool nothing is moved between GPU and CPU, and nobody is told that the planes are apart.
#[test]
fn one_pool_is_no_two_planes() {
    let knowledge = Knowledge::embedded().unwrap();
    let oom = "INFO 11-20 10:05:12 [model_runner.py:1108] Starting to load model m...\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 119.70 GiB of which 1.10 GiB is free. Including non-PyTorch memory, this process has 118.50 GiB memory in use. Of the allocated memory 117.00 GiB is allocated by PyTorch, and 0.10 GiB is reserved by PyTorch but unallocated.\n";
    let layers = "ggml_vulkan: 0 = AMD Radeon Graphics (RADV GFX1151) (radv) | uma: 1 | fp16: 1 | bf16: 0 | warp size: 64 | shared memory: 65536 | int dot: 1 | matrix cores: none\nload_tensors: offloading 48 repeating layers to GPU\nload_tensors: offloaded 49/49 layers to GPU\nggml_vulkan: Device memory allocation of size 42949672960 failed.\nggml_vulkan: vk::Device::allocateMemory: ErrorOutOfDeviceMemory\nalloc_tensor_range: failed to allocate Vulkan0 buffer of size 42949672960\nllama_model_load: error loading model: unable to allocate Vulkan0 buffer\n";
    let host = "RuntimeError: [enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 8589934592 bytes. Error code 12 (Cannot allocate memory)\n";
    let smi = "index, name, uuid, pci.bus_id, memory.total [MiB], memory.used [MiB]\n0, NVIDIA GB10, GPU-5fd4f087-86f3-7a43-b711-4771313afc50, 0000000F:01:00.0, 122571 MiB, 121344 MiB\n";
    for (log, card) in [(oom, Some(smi)), (host, Some(smi)), (layers, None)] {
        let file =
            |name: &str, text: &str| dualplane_core::evidence::RawFile::new(name, text.as_bytes().to_vec());
        let mut files = vec![file("previous.log", log)];
        files.extend(card.map(|c| file("nvidia-smi.csv", c)));
        let r = report::triage_all("x", files, Vec::new(), &knowledge).remove(0);
        let titles: Vec<&str> = r.actions.iter().map(|a| a.title.as_str()).collect();
        let apart =
            ["host RAM, and VRAM ran out", "Do not change VRAM flags", "runs on the CPU", "VRAM settings"];
        assert!(!titles.iter().any(|t| apart.iter().any(|w| t.contains(w))), "{titles:?}");
        assert!(
            titles.iter().any(|t| t.starts_with("Do not move weights or caches between GPU and CPU")),
            "{titles:?}"
        );
        assert!(r.causes[0].supports.iter().any(|s| s.text.contains("share one pool")), "{log}");
    }
}

/// A model that is loaded again while its old copy serves needs the memory of two; one that was unloaded does not.
#[test]
fn a_reload_beside_the_old_copy_is_told() {
    let knowledge = Knowledge::embedded().unwrap();
    let log = |unloaded: &str| {
        format!(
            "I0606 02:30:41.110201 1 model_lifecycle.cc:473] \"loading: encoder:1\"\n\
             I0606 02:30:44.110201 1 model_lifecycle.cc:849] \"successfully loaded 'encoder'\"\n\
             I0606 02:30:45.001845 1 grpc_server.cc:4819] Started GRPCInferenceService at 0.0.0.0:8001\n\
             {unloaded}\
             I0606 04:30:41.110201 1 model_lifecycle.cc:473] \"loading: encoder:2\"\n\
             E0606 04:30:48.730118 1 model_lifecycle.cc:654] \"failed to load 'encoder' version 2: Internal: onnx runtime error 6: Exception during initialization: /onnxruntime_src/onnxruntime/core/framework/bfc_arena.cc:376 Failed to allocate memory for requested buffer of size 2147483648; CUDA out of memory\"\n"
        )
    };
    let unloaded =
        "I0606 04:30:40.110201 1 model_lifecycle.cc:636] \"successfully unloaded 'encoder' version 1\"\n";
    for (log, told) in [(log(""), true), (log(unloaded), false)] {
        let file = dualplane_core::evidence::RawFile::new("previous.log", log.into_bytes());
        let r = report::triage_all("x", vec![file], Vec::new(), &knowledge).remove(0);
        let says =
            r.actions.iter().any(|a| a.title.contains("keeps the old copy until the new one is ready"));
        let titles: Vec<&str> = r.actions.iter().map(|a| a.title.as_str()).collect();
        assert_eq!(says, told, "{} {titles:?}", r.verdict.class);
        assert!(titles.iter().any(|t| t.contains("instance_group")), "{titles:?}");
    }
}

/// A pod of a Deployment whose server runs out of VRAM in a step, with these fields of its container and volumes.
fn of_pod(container: &str, volumes: &str, deployment: &str) -> String {
    let pod = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"llm-6d9f7c5b84-x2lqm","namespace":"serving","labels":{{"helm-release-name":"stack","model":"m"}},"ownerReferences":[{{"kind":"ReplicaSet","name":"llm-6d9f7c5b84","controller":true}}]}},"spec":{{"containers":[{{"name":"server",{container}}}],"volumes":{volumes}}},"status":{{"containerStatuses":[{{"name":"server","restartCount":1,"lastState":{{"terminated":{{"exitCode":1,"reason":"Error"}}}}}}]}}}}"#
    );
    let log = "INFO 11-22 09:00:00 [api_server.py:100] vLLM API server version 0.11.2\nINFO:     Application startup complete.\nINFO:     10.0.0.1:1 - \"POST /v1/completions HTTP/1.1\" 200 OK\n(EngineCore_DP0 pid=201) ERROR 11-22 09:10:00 [core.py:700] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 616.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which 501.19 MiB is free. Including non-PyTorch memory, this process has 78.61 GiB memory in use. Of the allocated memory 76.01 GiB is allocated by PyTorch, and 899.74 MiB is reserved by PyTorch but unallocated.\n";
    let files = vec![
        dualplane_core::evidence::RawFile::new("pod.json", pod),
        dualplane_core::evidence::RawFile::new("workload.json", deployment.to_owned()),
        dualplane_core::evidence::RawFile::new("previous.log", log),
    ];
    let knowledge = Knowledge::embedded().unwrap();
    let all = report::triage_all("x", files, Vec::new(), &knowledge);
    let fix = all[0].actions.iter().find(|a| a.stage == Stage::Fix && !a.changes.is_empty()).unwrap();
    format!("{}\n{}\n{}", fix.title, fix.arithmetic.join("\n"), fix.commands.join("\n"))
}

#[test]
fn a_setting_is_told_where_it_stands() {
    let volumes = r#"[{"name":"conf","configMap":{"name":"llm-conf"}}]"#;
    let server = |args: &str| {
        format!(
            r#""image":"vllm/vllm-openai:v0.11.2","args":{args},"volumeMounts":[{{"name":"conf","mountPath":"/etc/llm"}}]"#
        )
    };
    let deployment = |annotations: &str| {
        format!(
            r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"llm","namespace":"serving","annotations":{annotations}}},"spec":{{"template":{{"spec":{{"containers":[]}}}}}}}}"#
        )
    };
    let file =
        of_pod(&server(r#"["--model","m","--config","/etc/llm/serve.yaml"]"#), volumes, &deployment("{}"));
    assert!(file.contains("key serve.yaml of ConfigMap llm-conf (--config) sets it"), "{file}");
    let none = of_pod(&server(r#"["--model","m"]"#), volumes, &deployment("{}"));
    assert!(!none.contains("ConfigMap") && !none.contains("helm"), "{none}");
    // Of a chart that is known the value has a name, and of Helm the release.
    let helm = of_pod(
        &server(r#"["--model","m"]"#),
        volumes,
        &deployment(r#"{"meta.helm.sh/release-name":"stack"}"#),
    );
    assert!(helm.contains("(servingEngineSpec.modelSpec[].vllmConfig.gpuMemoryUtilization)"), "{helm}");
    assert!(helm.contains("helm get values stack -n serving -o yaml"), "{helm}");
    // Where Argo CD renders the chart, the release has no values of its own.
    let argo = r#"{"meta.helm.sh/release-name":"stack","argocd.argoproj.io/tracking-id":"llm:apps/Deployment:serving/llm"}"#;
    let argo = of_pod(&server(r#"["--model","m"]"#), volumes, &deployment(argo));
    assert!(argo.contains("Argo CD (application llm)") && !argo.contains("helm get values"), "{argo}");
}

/// The first report of one pasted text.
fn of_paste(text: &str) -> Report {
    let files = vec![dualplane_core::evidence::RawFile::new("paste.txt", text)];
    report::triage_all("x", files, Vec::new(), &Knowledge::embedded().unwrap()).remove(0)
}

/// A machine without Kubernetes has no pods to move, and no kubectl.
#[test]
fn a_service_of_a_machine_without_kubernetes_is_told_of_systemd() {
    let told = |unit: &str| {
        format!(
            "Feb 24 11:16:31 adl systemd[1]: {unit}: A process of this unit has been killed by the OOM killer.\n\
             Feb 24 11:16:32 adl systemd[1]: {unit}: Failed with result 'oom-kill'.\n\
             Feb 24 11:16:32 adl systemd[1]: {unit}: Consumed 32.964s CPU time, 123.9G memory peak.\n"
        )
    };
    let r = of_paste(&told("ollama.service"));
    let commands: Vec<&String> = r.actions.iter().flat_map(|a| &a.commands).collect();
    assert!(commands.iter().all(|c| !c.contains("kubectl")), "{commands:?}");
    assert!(commands.iter().any(|c| c.starts_with("systemctl show ollama.service")), "{commands:?}");
    assert!(r.actions.iter().flat_map(|a| &a.arithmetic).any(|b| b.contains("123.90 GiB")));
    // What runs containers is no server: the victim may be any pod's.
    let r = of_paste(&told("containerd.service"));
    assert!(!r.actions.iter().flat_map(|a| &a.commands).any(|c| c.starts_with("systemctl")));
}

/// What the kubelet did not let in is a matter of what it asks for, with the numbers of the message.
#[test]
fn a_pod_that_was_not_let_in_is_told_what_is_left() {
    let r = of_paste(
        "Name:             llm-0\nNamespace:        serving\nNode:             gpu-1/\nStatus:           Failed\nReason:           OutOfmemory\n\
         Message:          Pod was rejected: Node didn't have enough resource: memory, requested: 134217728, used: 7360970752, capacity: 7366623232\n",
    );
    let arithmetic: Vec<&String> = r.actions.iter().flat_map(|a| &a.arithmetic).collect();
    assert!(
        arithmetic.iter().any(|b| b.contains("128.00 MiB") && b.contains("leaves 5.39 MiB")),
        "{arithmetic:?}"
    );
}

/// A row of `kubectl get pods` tells why a pod as a whole ended, or was never let in.
#[test]
fn the_status_of_a_row_is_heard() {
    for (status, class, rule) in [
        ("OutOfmemory", "not_memory", "kubernetes_failure"),
        ("OutOfnvidia.com/gpu", "not_memory", "kubernetes_failure"),
        ("UnexpectedAdmissionError", "not_memory", "kubernetes_failure"),
        ("Evicted", "unknown", "death_line"),
    ] {
        let with_heading =
            format!("NAME    READY   STATUS    RESTARTS   AGE\nllm-0   0/1     {status}   0          7s\n");
        for text in [with_heading, format!("llm-0                 0/1     {status}   0          7s\n")] {
            let v = of_paste(&text).verdict;
            assert_eq!((v.class.as_str(), v.decided_by), (class, rule), "{text}");
        }
    }
}
