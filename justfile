# The commands that people use. `just` alone lists them. What CI runs as well stands in `.ci/recipe`, which needs no `just`.

set shell := ["bash", "-euo", "pipefail", "-c"]

# Folder of labelled incidents for `just corpus`
corpus_dir := "testdata/incidents"

# List the commands
default:
    @just --list

# Everything that CI asks for, but for what needs a cluster or a virtual machine
ci: fmt-check lint docs deny test incidents plans

# Build the optimised binary: target/release/dualplane
build:
    cargo build --release --locked

# Everything that is published, into target/published: programs, packages, wheels, image, sums; or one step of dist/run
dist *args:
    dist/run {{ args }}

# Judge evidence: just triage testdata/incidents/real-k8s-pid1-oom
triage *args:
    .ci/recipe triage {{ args }}

# The same with knowledge/ as it lies here, without compiling it in
triage-knowledge *args:
    .ci/recipe triage-knowledge {{ args }}

# Format all code
fmt:
    cargo fmt --all

# Fail where code is not formatted
fmt-check:
    .ci/recipe fmt-check

# Clippy over all targets, warnings are errors
lint:
    .ci/recipe lint

# Functions above the length of clippy.toml: places to look at, not errors
lint-long:
    cargo clippy --workspace --locked -- -W clippy::too_many_lines

# All tests
test *args:
    .ci/recipe test {{ args }}

# Only what a change of knowledge/ needs: every example and every near miss
test-knowledge:
    .ci/recipe test-knowledge

# Crates with known faults, by the RustSec database (needs the internet)
advisories:
    .ci/recipe advisories

# API documentation, warnings are errors
docs:
    .ci/recipe docs

# The pages of docs/ as a site with search: target/book/index.html (needs mdBook, and says how to get it)
site *args:
    .ci/recipe site {{ args }}

# Figures on labelled incidents: confusion, every miss, bounds
corpus dir=corpus_dir *args:
    .ci/recipe corpus {{ dir }} {{ args }}

# The same within CI's bounds: the incidents of this project, and those beside it
incidents:
    .ci/recipe incidents

# Collect what a version of an engine can print from its source tree, and list what is new: just harvest vllm 0.34.0 DIR --under vllm
harvest name version *args:
    .ci/recipe harvest {{ name }} {{ version }} {{ args }}

# Hold the knowledge against what the engines' sources can print: known, benign, unknown by engine and version
coverage *args:
    .ci/recipe coverage {{ args }}

# Plans against an engine's own arithmetic and measured start-ups, where they lie beside the project
plans:
    .ci/recipe plans

# Licences, duplicate versions and sources; installs cargo-deny where it is absent
deny:
    .ci/recipe deny

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

# The Helm chart: `just chart lint`, or `just chart live` in the cluster of `just e2e up`
chart *args:
    e2e/helm {{ args }}

# Wall time of `capture` against kubectl by hand, on the cluster of $KUBECONFIG: `just bench-capture POD NAMESPACE TURNS`
bench-capture *args:
    bench/capture.sh {{ args }}

# The whole agent beside node exporter: `just bench-agent 110 8 60` (containers, GPUs, seconds)
bench-agent *args:
    bench/agent.sh {{ args }}

# A thousand crash loops against the agent: `just bench-chaos 1000`
bench-chaos *args:
    bench/chaos.sh {{ args }}
