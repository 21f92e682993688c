# The commands that people and CI use. `just` alone lists them; every one is a plain cargo command.

set shell := ["bash", "-euo", "pipefail", "-c"]

# Folder of labelled incidents for `just corpus`
corpus_dir := "testdata/incidents"

# List the commands
default:
    @just --list

# Everything that CI asks for
ci: fmt-check lint docs test (corpus corpus_dir "--min-class" "100" "--min-trigger" "100")

# Build the optimised binary: target/release/dualplane
build:
    cargo build --release --locked

# Judge evidence: just triage testdata/incidents/real-k8s-pid1-oom
triage *args:
    cargo run --release --locked --quiet -p dualplane -- triage {{ args }}

# Format all code
fmt:
    cargo fmt --all

# Fail where code is not formatted
fmt-check:
    cargo fmt --all --check

# Clippy over all targets, warnings are errors
lint:
    cargo clippy --workspace --all-targets --locked -- -D warnings

# Functions above the length of clippy.toml: places to look at, not errors
lint-long:
    cargo clippy --workspace --locked -- -W clippy::too_many_lines

# All tests
test *args:
    cargo test --workspace --locked {{ args }}

# Only what a change of knowledge/ needs: every example and every near miss
test-knowledge:
    cargo test -p dualplane-core --locked --test knowledge

# API documentation, warnings are errors
docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

# Figures on labelled incidents: confusion, every miss, bounds
corpus dir=corpus_dir *args:
    cargo run --release --locked --quiet -p dualplane -- dev corpus {{ dir }} {{ args }}

# Licences, duplicate versions and sources (needs cargo-deny)
deny:
    cargo deny check licenses bans sources

# Scanning of large logs against `grep -F -f`, in turns: `just bench-scan 1024 5` (MiB, turns, files)
bench-scan *args:
    bench/scan.sh {{ args }}

# Cost of one sample of the node agent: `just bench-sample 110 8` (containers, fake GPUs)
bench-sample *args:
    bench/sample.sh {{ args }}

# Processor time of asking engines for their metrics: `just bench-engines 8 200` (engines, times)
bench-engines *args:
    bench/engines.sh {{ args }}

# Instructions of typical cases against bench/instructions.txt (needs valgrind)
bench-instructions *args:
    bench/instructions.sh {{ args }}

# The live commands against a real Kubernetes on this machine (root, Go): build, start, test, stop, clean up
e2e *args:
    e2e/run {{ args }}

# Wall time of `capture` against kubectl by hand, on the cluster of $KUBECONFIG: `just bench-capture POD NAMESPACE TURNS`
bench-capture *args:
    bench/capture.sh {{ args }}

# The whole agent beside node exporter: `just bench-agent 110 8 60` (containers, GPUs, seconds)
bench-agent *args:
    bench/agent.sh {{ args }}

# A thousand crash loops against the agent: `just bench-chaos 1000`
bench-chaos *args:
    bench/chaos.sh {{ args }}
