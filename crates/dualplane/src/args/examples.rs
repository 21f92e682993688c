//! The examples at the end of each command's help. Every one of them is parsed by a test.

/// Help of the program: examples, then the exit codes.
pub(super) fn top_level() -> String {
    format!("{PROGRAM}\n\n{}", crate::exit::help())
}

const PROGRAM: &str = "\
Examples:
  dualplane triage pod/llm-0 -n serving    find out why a pod died
  dualplane plan --gpu H100-80GB -- vllm serve Qwen/Qwen3-8B    predict what it needs";

pub(super) const TRIAGE: &str = "\
Examples:
  dualplane triage ./incident    logs, pod.json, events.json and kernel.log in a directory
  kubectl logs llm-0 --previous | dualplane triage -
  dualplane triage llm-0.tar.zst -o html > llm-0.html    both planes over time, for a browser
  dualplane triage -A --failed --prometheus http://prometheus.monitoring:9090";

pub(super) const CAPTURE: &str = "\
Examples:
  dualplane capture pod/llm-0 -n serving
  dualplane capture -l app=vllm -n serving --failed --out evidence.tar.zst
  dualplane capture --url http://10.0.0.7:8000    an engine's metrics, version and models, without a cluster";

pub(super) const MAP: &str = "\
Examples:
  dualplane map deploy/llm -n serving -o wide
  dualplane map --node gpu-node-1    every GPU of a node and the pods that use it";

pub(super) const TOP: &str = "\
Examples:
  sudo dualplane top --sort vram
  dualplane top --replay incident.tar.zst";

pub(super) const APPLY: &str = "\
Examples:
  dualplane triage deploy/llm -n serving -o json > report.json
  dualplane apply report.json --dry-run
  dualplane apply report.json --action 2";

pub(super) const ROLLBACK: &str = "\
Examples:
  dualplane rollback    list all changes
  dualplane rollback --last";

pub(super) const AGENT: &str = "\
Examples:
  sudo dualplane agent --service vllm.service    a GPU host without Kubernetes
  sudo dualplane agent --disk 256Mi --copy-to /mnt/incidents";

pub(super) const GUARD: &str = "\
Examples:
  dualplane guard --upstream http://127.0.0.1:8000    then send requests to port 8010
  dualplane guard --upstream http://127.0.0.1:8000 --shadow    count only, to see what it would do
  dualplane guard --config guard.toml";

pub(super) const SERVER: &str = "\
Examples:
  dualplane server demo    recorded incidents on this machine, to look around
  dualplane server serve --data ./fleet
  dualplane server serve --help    what it can be told";

pub(super) const GUARD_CHECK: &str = "\
Examples:
  dualplane guard check --config guard.toml
  dualplane guard check --config /etc/dualplane/guard.toml    before a restart or a SIGHUP";

pub(super) const GUARD_STATUS: &str = "\
Examples:
  dualplane guard status
  dualplane guard status --admin 10.0.0.7:10981 -o json";

pub(super) const INCIDENTS: &str = "\
Examples:
  dualplane incidents ls -n serving
  dualplane incidents show last";

pub(super) const INCIDENTS_LS: &str = "\
Examples:
  dualplane incidents ls --all
  dualplane incidents ls -n serving -o json
  dualplane incidents ls --server https://fleet.example:8377 --server-token token --filter class=host_oom_killed";

pub(super) const INCIDENTS_SHOW: &str = "\
Examples:
  dualplane incidents show last
  dualplane incidents show 20261121T2138 -v
  dualplane incidents show last --server https://fleet.example:8377 --server-token token";

pub(super) const INCIDENTS_EXPORT: &str = "\
Examples:
  dualplane incidents export last
  dualplane incidents export 20261121T2138 --out incident.tar.zst";

pub(super) const PLAN: &str = "\
Examples:
  dualplane plan --gpu H100-80GB --engine-version 0.11.0 -- vllm serve Qwen/Qwen3-8B --max-model-len 16384
  dualplane plan --gpu A100-80GB --manifest deployment.yaml --emit resources
  dualplane plan qwen3-14b    the GPUs that hold it, and how many of each
  dualplane plan qwen3-14b --gpu L40S -- --max-model-len 8192    with flags of vLLM alone
  dualplane plan --list-models llama";

pub(super) const PREFLIGHT: &str = "\
Examples:
  dualplane preflight --wait 5m -- vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2
  dualplane preflight    list the processes that use the GPUs of this machine";

pub(super) const FIT: &str = "\
Examples:
  dualplane fit --gpu H100-80GB --input-tokens p50=1000,p99=8000 --output-tokens 500 --concurrency 64 -- vllm serve Qwen/Qwen3-8B
  dualplane fit --input-tokens 2000 --output-tokens 300 --concurrency 16 --template performance -- vllm serve Qwen/Qwen3-8B";

pub(super) const REHEARSE: &str = "\
Examples:
  dualplane rehearse qwen3-14b --gpu H100-80GB --traffic chat --rate 40
  dualplane rehearse --gpu L40S --shape shape.toml --with '--max-num-seqs 96' -- vllm serve Qwen/Qwen3-8B
  dualplane rehearse --gpu H100-80GB --trace requests.jsonl --step-time-from vllm.log -- vllm serve Qwen/Qwen3-8B
  dualplane rehearse --gpu L40S --incident bundle.tar.gz    would the fix have held?
  dualplane rehearse --gpu L40S --incident bundle.tar.gz --with '--max-num-seqs 96'    would 96 sequences have held?";

pub(super) const LINT: &str = "\
Examples:
  helm template ./chart | dualplane lint -
  dualplane lint deploy/ --gpu H100-80GB --severity note
  dualplane lint deploy/ -o sarif > lint.sarif
  dualplane lint deploy/ --fix    the patches; --write changes the files
  dualplane lint --live -n serving
  dualplane lint --explain shm-missing
  dualplane lint --emit policy | kubectl apply -f -";

pub(super) const RULES: &str = "\
Examples:
  dualplane rules --engine vllm > /etc/prometheus/rules/dualplane.yaml
  dualplane rules -o prometheusrule -n monitoring --label release=prometheus | kubectl apply -f -
  dualplane rules --set host_memory_ratio=85% --set ttft_seconds=2 --for 15m
  dualplane rules > rules.yaml
  dualplane rules --tests > tests.yaml    then: promtool test rules tests.yaml
  dualplane rules --explain host-memory-near-limit";

pub(super) const DASHBOARDS: &str = "\
Examples:
  dualplane dashboards
  dualplane dashboards incident -o json > incident.json    for Grafana's import
  dualplane dashboards --engine vllm --dir /var/lib/grafana/dashboards
  dualplane dashboards -o configmap -n monitoring | kubectl apply -f -";

pub(super) const RESOURCES: &str = "\
Examples:
  dualplane resources deploy/llm -n serving --prometheus http://prometheus.monitoring:9090
  dualplane resources deploy/llm -n serving --prometheus http://HOST:9090 --since 7d -o yaml
  dualplane resources incident.tar.zst -o json
  dualplane resources measure.json -c server -o patch
  dualplane resources deploy/llm -n serving --prometheus http://HOST:9090 -o keda --max 8";

pub(super) const PROFILE: &str = "\
Examples:
  dualplane profile server.log    draws the two histograms
  kubectl logs deploy/llm -n serving | dualplane profile - -o toml > shape.toml
  dualplane profile http://10.0.0.7:8000/metrics -o toml
  dualplane profile --prometheus http://prometheus.monitoring:9090 --since 7d -o toml
  dualplane profile --synthesise chat --rate 8 -o toml > shape.toml";

pub(super) const MEASURE: &str = "\
Examples:
  dualplane measure --target http://localhost:8000 --traffic chat --rate 8 --duration 10m --out report.html
  dualplane measure --target http://localhost:8000 --shape shape.toml --search --slo ttft=1s,itl=50ms
  dualplane measure --serve ./serve.sh --target http://localhost:8000 --traffic chat --concurrency 32
  dualplane measure --pid 4711 -- guidellm benchmark --target http://localhost:8000 --output-path out.json
  dualplane measure --agent http://10.0.0.7:9464 --pod serving/llm-0 --target http://10.0.3.4:8000 --traffic rag
  dualplane measure --prometheus http://prometheus:9090 --pod serving/llm-0 --target http://10.0.3.4:8000 --traffic chat";

pub(super) const GATE: &str = "\
Examples:
  dualplane gate --init > gate.toml
  dualplane gate --policy gate.toml --candidate new.json --baseline baselines/h100.json
  dualplane gate --policy gate.toml --candidate runs/ --baseline baselines/ -o markdown > comment.md
  dualplane gate --policy gate.toml --candidate new.json -o junit > gate.xml";

pub(super) const TUNE: &str = "\
Examples:
  dualplane tune report.json
  dualplane tune --live http://10.0.0.7:8000 --seconds 60
  dualplane tune report.json -o json > move.json    then: dualplane apply move.json --to deploy/llm -n serving
  dualplane tune --run --log tune.json --target http://localhost:8000 -- vllm serve Qwen/Qwen3-8B --max-num-seqs 8
  dualplane tune --run --log tune.json --measure ./measure.sh -- vllm serve Qwen/Qwen3-8B --max-num-seqs 8
  dualplane tune --run --log tune.json --to deploy/llm -n serving --target http://llm.serving:8000
  dualplane tune --log tune.json    what a search did so far";

pub(super) const EXPLAIN: &str = "\
Examples:
  dualplane explain host_oom_killed
  dualplane explain 79         an Xid code
  dualplane explain --rules    how a verdict is reached";

pub(super) const RUNBOOK: &str = "\
Examples:
  dualplane runbook                    list the classes
  dualplane runbook host_oom_killed    the page of one";

pub(super) const KNOWLEDGE: &str = "\
Examples:
  dualplane knowledge check ./our-knowledge
  dualplane triage ./incident --knowledge ./our-knowledge";

pub(super) const KNOWLEDGE_CHECK: &str = KNOWLEDGE;

pub(super) const COMPLETIONS: &str = "\
Examples:
  dualplane completions bash > /etc/bash_completion.d/dualplane
  dualplane completions zsh > ~/.zfunc/_dualplane";

pub(super) const UPGRADE_CHECK: &str = "\
Examples:
  dualplane upgrade-check /var/lib/dualplane           what the agent of this node kept
  dualplane upgrade-check ./incidents report.json      bundles and a report
  dualplane upgrade-check                              what later releases take away";

pub(super) const MAN: &str = "\
Examples:
  dualplane man | man -l -                                read the manual
  dualplane man triage | man -l -                         of one command
  sudo dualplane man --dir /usr/local/share/man/man1      install all pages";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::super::Args;

    /// The words of an example: without what pipes into it, where it writes to, and what explains it.
    fn words(line: &str) -> Vec<&str> {
        let command = line.split("    ").next().unwrap();
        let command = command.split('>').next().unwrap();
        let own = command.split('|').find(|part| part.contains("dualplane ")).unwrap();
        own.split_whitespace().skip_while(|w| *w == "sudo").collect()
    }

    fn check(command: &clap::Command, path: &str) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples: Vec<&str> = help
            .split_once("Examples:\n")
            .unwrap_or_else(|| panic!("{path} has no examples"))
            .1
            .lines()
            .take_while(|l| !l.is_empty())
            .map(str::trim_start)
            .collect();
        assert!(examples.len() >= 2, "{path}: {examples:?}");
        assert!(examples.iter().any(|e| e.contains(path)), "{path} is in none of its examples");
        for example in examples {
            if let Err(e) = Args::command().try_get_matches_from(words(example)) {
                panic!("{path}: {example}\n{e}");
            }
        }
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        assert!(about.split_whitespace().count() >= 4, "{path} does not say what it is for");
        for sub in command.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help") {
            check(sub, &format!("{path} {}", sub.get_name()));
        }
    }

    #[test]
    fn every_command_says_what_it_is_for_and_ends_with_two_examples_that_parse() {
        check(&Args::command(), "dualplane");
    }
}
