//! Which container runs an engine, and on which ports it likely tells its metrics.

use dualplane_core::knowledge::metrics::{EngineMetrics, engines};
use dualplane_engines::command_line as cmd;
use dualplane_node::node::Proc;

/// Pids that are kept to say whose a socket is: the server that listens is one of the smaller processes of an engine.
const MAX_PIDS: usize = 64;

/// A container whose engine is to be asked.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Slot of the container.
    pub slot: u16,
    /// Its processes, pids of the host.
    pub pids: Vec<u32>,
    /// Which engine; `None` where only ports were given and the page says which.
    pub engine: Option<&'static EngineMetrics>,
    /// Ports that its command line names, else those that the engine has by default.
    pub likely: Vec<u16>,
    /// Ports that somebody gave (an annotation): asked without a look at sockets' owners.
    pub given: Vec<u16>,
}

/// A container as a candidate; `None` where no process of it looks like an engine and no port is given.
#[must_use]
pub fn candidate(slot: u16, processes: &[Proc], given: &[u16]) -> Option<Candidate> {
    let engine = processes.iter().find_map(engine_of);
    if engine.is_none() && given.is_empty() {
        return None;
    }
    let mut likely = Vec::new();
    if let Some(e) = engine {
        likely.extend(processes.iter().flat_map(|p| ports(&p.words, e.port_flags)));
        // A port that was chosen leaves the usual one to others.
        if likely.is_empty() {
            likely.extend(e.ports);
        }
        likely.dedup();
    }
    let pids = processes.iter().map(|p| p.pid).take(MAX_PIDS).collect();
    Some(Candidate { slot, pids, engine, likely, given: given.to_vec() })
}

fn engine_of(p: &Proc) -> Option<&'static EngineMetrics> {
    cmd::program_words(&p.words)
        .chain([p.comm.as_str()])
        .find_map(|w| engines().iter().find(|e| e.is_named_by(w)))
}

/// Every port that these flags name.
fn ports(words: &[String], names: &[String]) -> Vec<u16> {
    let names: Vec<String> = names.iter().map(|n| cmd::plain(n)).collect();
    let given = cmd::flags(words, &[]).flags;
    given
        .iter()
        .filter(|g| names.contains(&g.name))
        .filter_map(|g| g.value().trim_matches(['"', '\'']).parse().ok().filter(|p| *p > 0))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, comm: &str, line: &str) -> Proc {
        let words = line.split(' ').map(str::to_owned).collect();
        Proc { pid, comm: comm.to_owned(), words, ..Proc::default() }
    }

    #[test]
    fn engines_and_their_ports() {
        let of = |line: &str| {
            let c = candidate(0, &[process(7, "python3", line)], &[])?;
            Some((c.engine?.engine, c.likely))
        };
        assert_eq!(
            of("/usr/bin/python3 /usr/local/bin/vllm serve a/b --port 9000"),
            Some(("vllm", vec![9000]))
        );
        assert_eq!(of("python3 -m vllm.entrypoints.openai.api_server"), Some(("vllm", vec![8000])));
        assert_eq!(of("python -m sglang.launch_server --port=31000"), Some(("sglang", vec![31000])));
        assert_eq!(of("tritonserver --http-port 8000"), Some(("triton", vec![8002])));
        assert_eq!(
            of("text-generation-router --port 8080 --prometheus-port 9001"),
            Some(("tgi", vec![8080, 9001]))
        );
        assert_eq!(of("llama-server -m x.gguf --port 99999"), Some(("llama.cpp", vec![8080])));
        assert_eq!(of("nginx --conf /etc/vllm"), None);
        assert_eq!(of("python3 train.py --name vllm"), None);
    }

    #[test]
    fn workers_name_the_engine_and_given_ports_need_none() {
        let all =
            [process(8, "VLLM::EngineCor", "VLLM::EngineCore"), process(7, "python3", "python3 serve.py")];
        let c = candidate(3, &all, &[]).unwrap();
        assert_eq!((c.engine.unwrap().engine, c.pids), ("vllm", vec![8, 7]));
        assert!(candidate(3, &[process(7, "sleep", "sleep 1")], &[]).is_none());
        let c = candidate(3, &[process(7, "sleep", "sleep 1")], &[7000]).unwrap();
        assert!(c.engine.is_none() && c.given == [7000]);
    }
}
