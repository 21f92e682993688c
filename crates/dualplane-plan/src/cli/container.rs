//! What `docker run` and its like give a container of memory and GPUs.

use crate::launch::PodAsk;
use dualplane_base::units::{Bytes, GIB, KIB, MIB};

/// The options before the image. Without `--shm-size` a container has 64 MiB, as a pod has.
pub(super) fn limits(options: &[String]) -> PodAsk {
    let mut pod = PodAsk { known: true, ..PodAsk::default() };
    for (i, word) in options.iter().enumerate() {
        let (name, own) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word.as_str(), None),
        };
        let value = || own.or_else(|| options.get(i + 1).map(String::as_str)).unwrap_or_default();
        match name {
            "-m" | "--memory" => pod.limit = size(value()),
            "--memory-reservation" => pod.request = size(value()),
            "--shm-size" => pod.shm = size(value()).map(Some),
            // The machine's own.
            "--ipc" if value() == "host" => pod.shm = Some(None),
            "--gpus" => pod.gpus = gpus(value()),
            _ => {}
        }
    }
    pod
}

/// `8g`, `512m`, `1073741824`: units of 1024, as the tool reads them.
fn size(text: &str) -> Option<Bytes> {
    let text = text.trim().to_ascii_lowercase();
    let text = text.trim_end_matches("ib").trim_end_matches('b');
    let (number, unit) = match text.chars().last()? {
        'k' => (text.trim_end_matches('k'), KIB),
        'm' => (text.trim_end_matches('m'), MIB),
        'g' => (text.trim_end_matches('g'), GIB),
        't' => (text.trim_end_matches('t'), GIB << 10),
        _ => (text, 1),
    };
    let n: f64 = number.parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0)?;
    Some(Bytes((n * unit as f64) as u64))
}

/// `2`, or `"device=0,1"`; `all` says no number.
fn gpus(text: &str) -> Option<u64> {
    let text = text.trim_matches(['"', '\'']);
    if let Ok(n) = text.parse::<u64>() {
        return Some(n).filter(|n| *n > 0);
    }
    let list = text.strip_prefix("device=")?;
    u64::try_from(list.split(',').filter(|v| device(v)).count()).ok().filter(|n| *n > 0)
}

/// A GPU's index or UUID.
pub(super) fn device(text: &str) -> bool {
    let text = text.trim();
    let index = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    index || text.starts_with("GPU-") || text.starts_with("MIG-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> PodAsk {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        limits(&words)
    }

    #[test]
    fn what_a_container_may_use() {
        let p = of("docker run -d --gpus \"device=0,1\" -m 8g --shm-size=512m -p 80:80");
        assert_eq!((p.limit, p.gpus), (Some(Bytes(8 * GIB)), Some(2)));
        assert_eq!((p.shm, p.known), (Some(Some(Bytes(512 * MIB))), true));
        let p = of("podman run --memory=16GiB --ipc=host --gpus all");
        assert_eq!((p.limit, p.gpus, p.shm), (Some(Bytes(16 * GIB)), None, Some(None)));
        assert_eq!(of("docker run --gpus 4 --memory x").gpus, Some(4));
        assert_eq!(of("docker run").shm, None);
    }
}
