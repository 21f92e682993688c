//! A real vLLM on the CPU, in a pod that changes its root to the machine's: `e2e/run engine` lays it there.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A start on a busy machine of two cores, and then minutes of requests.
pub const PATIENCE: Duration = Duration::from_secs(420);

/// The folder of the engine; without it the test says so, and fails where it is asked for.
pub fn engine() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("E2E_VLLM")?);
    if folder.join("venv/bin/vllm").exists() && folder.join("tiny/config.json").exists() {
        return Some(folder);
    }
    let why = format!("no real vLLM in {}: e2e/run engine builds it", folder.display());
    assert!(std::env::var_os("E2E_REQUIRE_VLLM").is_none(), "{why}");
    eprintln!("SKIPPED: {why}");
    None
}

/// One that is not started again.
pub struct Server<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
    /// Memory limit.
    pub limit: &'a str,
    /// GiB of the KV cache.
    pub pool: u32,
    /// Further arguments of `vllm serve`.
    pub more: &'a str,
}

impl Server<'_> {
    /// As a pod. The machine's own table of hosts knows its name: without it each look-up waits for a name server that is not
    /// there. It has the machine's process ids as well, because it sees the machine's `/proc`.
    pub fn pod(&self, folder: &Path) -> String {
        let Self { namespace, name, limit, pool, more } = self;
        let folder = folder.display();
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: {namespace}}}\nspec:\n  hostPID: true\n  \
             restartPolicy: Never\n  terminationGracePeriodSeconds: 5\n  hostname: localhost\n  containers:\n  - name: vllm\n    \
             image: docker.io/vllm/vllm-openai:v0.11.0\n    imagePullPolicy: Never\n    \
             command: [chroot, /host, /bin/bash, -c]\n    args:\n    - |\n      \
             cd {folder} && exec venv/bin/python venv/bin/vllm serve ./tiny --port 8000 \\\n        \
             --max-model-len 4096 --enforce-eager {more} 2>&1\n    \
             env:\n    - {{name: VLLM_CPU_KVCACHE_SPACE, value: \"{pool}\"}}\n    - {{name: VLLM_HOST_IP, value: 127.0.0.1}}\n    \
             - {{name: GLOO_SOCKET_IFNAME, value: lo}}\n    - {{name: HF_HUB_OFFLINE, value: \"1\"}}\n    \
             - {{name: PATH, value: \"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"}}\n    \
             readinessProbe: {{httpGet: {{path: /health, port: 8000}}, periodSeconds: 3}}\n    \
             resources: {{limits: {{memory: {limit}}}, requests: {{memory: 64Mi}}}}\n    \
             volumeMounts: [{{name: host, mountPath: /host}}]\n  \
             volumes: [{{name: host, hostPath: {{path: /}}}}]\n"
        )
    }
}

/// The body of a completion, of four words so many times.
pub fn completion(times: usize, more: &str) -> String {
    format!(r#"{{"model": "./tiny", "prompt": "{}", {more}}}"#, "one two three four ".repeat(times))
}

/// Asks for a completion.
pub fn ask(address: &str, body: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect((address, 8000))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "POST /v1/completions HTTP/1.0\r\nHost: llm\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
