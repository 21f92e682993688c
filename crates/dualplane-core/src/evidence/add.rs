//! Files become a bundle: each by its kind.

use super::host::cgroup;
use super::kube::{self, inspect, kubelet, list as kube_list, merge, revisions};
use super::lines::{encoding, paste, prefix, rotation, stream, wrap};
use super::metrics::{self, exports, promql};
use super::{Bundle, Kind, LogSource, MAX_LINE, RawFile, Role, SiftedFrom, recognise, scrap, unfold};
use dualplane_base::order::Order as _;

impl Bundle {
    /// Reads files into a bundle. Never fails: what cannot be read is a gap.
    #[must_use]
    pub fn from_files(mut files: Vec<RawFile>) -> Self {
        // In which order they were named must not matter: of several that say the same, the first is cited.
        files.order_by(|a, b| a.name.cmp(&b.name));
        // A file that is given twice says what it says once.
        files.dedup_by(|a, b| a.name == b.name && a.bytes == b.bytes);
        let small = files.iter().filter(|f| f.bytes.len() <= scrap::MAX_TEXT);
        let texts: Vec<String> = small
            .filter(|f| {
                std::str::from_utf8(&f.bytes).is_ok_and(|t| !t.trim().is_empty() && !t.contains('\0'))
            })
            .map(|f| f.name.clone())
            .collect();
        let mut bundle = Self::default();
        for file in files {
            bundle.add(file);
        }
        merge::pasted(&mut bundle);
        if bundle.pods.is_empty() {
            bundle.pods = std::mem::take(&mut bundle.templates);
        }
        rotation::order(&mut bundle.logs);
        // A text was given, and nothing could be read of it: that is unknown, as every other text without evidence.
        if bundle.files.is_empty() {
            bundle.files = texts;
        }
        bundle.files.sort();
        bundle.gaps.order();
        bundle.gaps.dedup();
        bundle
    }

    fn add(&mut self, file: RawFile) {
        let file = match unfold(&file.bytes) {
            Some(sifted) if file.sifted.is_none() => RawFile::sifted(file.name, sifted),
            _ => file,
        };
        let mut file = RawFile { bytes: encoding::plain(file.bytes), ..file };
        if file.bytes.len() <= scrap::MAX_TEXT {
            file.bytes = scrap::tidy::plain(file.bytes);
        }
        let nuls = encoding::without_nuls(&mut file.bytes).unwrap_or(0);
        if let Some(listed) = kube_list::read(self, &file.bytes, &file.name) {
            self.listed(file.name, listed);
            return;
        }
        match recognise(&file.name, &file.bytes) {
            Kind::Kube(objects) => {
                let text = String::from_utf8_lossy(&file.bytes);
                if kube::add_all(self, &objects, &file.name, &text) == 0 {
                    self.gap(&file.name, "contains no pod, node, event or workload that triage uses", None);
                    return;
                }
            }
            Kind::Inspect(value) => self.pasted.extend(inspect::pods(&value, &file.name)),
            Kind::Export(export) => self.export(&file.name, export, file.sifted.as_ref()),
            Kind::Metrics => {
                let text = String::from_utf8_lossy(&file.bytes);
                self.samples(&text, &file.name);
            }
            Kind::Cgroup => {
                cgroup::file(&mut self.cgroups, &String::from_utf8_lossy(&file.bytes), &file.name);
            }
            Kind::Series(value) => {
                let text = String::from_utf8_lossy(&file.bytes);
                self.series(&value, &text, &file.name);
            }
            Kind::Log { kernel } => {
                if let Some(container) = unavailable_log(&file.bytes) {
                    let why = format!(
                        "it only contains kubectl's message that the log of {container} could not be \
                        retrieved: the kubelet no longer has it"
                    );
                    let command = dualplane_base::command::on_node("NODE", "ls -l /var/log/pods/*/*/");
                    self.gap(&file.name, &why, Some(&command));
                    return;
                }
                if let Some(i) = file.bytes.split(|b| *b == b'\n').position(|l| l.len() >= MAX_LINE) {
                    let line = file.sifted.as_ref().and_then(|f| f.numbers.get(i)).copied();
                    let why = format!(
                        "line {} is longer than {} KiB; only the beginning of such lines was read",
                        line.unwrap_or(i as u64 + 1),
                        MAX_LINE >> 10
                    );
                    self.gap(&file.name, &why, None);
                }
                match file.sifted {
                    Some(from) => self.sifted(&file.name, file.bytes, kernel, from),
                    None => self.text(&file.name, file.bytes, kernel),
                }
            }
            Kind::Manifest(value) => self.manifest(&value),
            Kind::Processes(list) => self.processes = Some(list),
            Kind::Revisions(value) => match revisions::read(&value, &file.name) {
                Ok(rollout) => self.rollouts.push(rollout),
                Err(gap) => {
                    self.gaps.push(gap);
                    return;
                }
            },
            Kind::Summary(value) => kubelet::summary(self, &value, &file.name),
            Kind::Unusable(why) => {
                self.gap(&file.name, &why, None);
                if !self.scraps(&file) {
                    return;
                }
            }
        }
        if nuls > 0 {
            let why = format!("it contains {nuls} NUL bytes, probably from a node crash; they were ignored");
            self.gap(&file.name, &why, None);
        }
        self.files.push(file.name);
    }

    /// Says what of a large list was not read.
    fn listed(&mut self, name: String, listed: kube_list::Listed) {
        if let Some(e) = &listed.broken {
            let why = format!(
                "its JSON is broken at line {}, column {} ({e}); the {} items before that were used",
                e.line(),
                e.column(),
                listed.used
            );
            self.gap(&name, &why, Some("save it again, for example with kubectl get … -o json"));
        }
        if listed.dropped > 0 {
            let why =
                format!("{} of its events exceed the limit for one file and were not used", listed.dropped);
            self.gap(
                &name,
                &why,
                Some("kubectl get events --field-selector involvedObject.name=POD -o json"),
            );
        }
        if listed.used == 0 {
            self.gap(&name, "contains no pod, node, event or workload that triage uses", None);
            return;
        }
        self.files.push(name);
    }

    /// Keeps the samples of a text.
    pub(super) fn samples(&mut self, text: &str, name: &str) {
        let (samples, dropped) = metrics::parse(text, name);
        self.metrics.extend(samples);
        if dropped > 0 {
            let why = format!("{dropped} of its samples exceed the limit for one file and were not used");
            let command = "save only the metrics of the affected server or pod, for example with grep";
            self.gap(name, &why, Some(command));
        }
    }

    /// Keeps the samples of an answer of Prometheus' HTTP API.
    pub(super) fn series(&mut self, value: &serde_json::Value, text: &str, name: &str) {
        let read = promql::read(value, text, name);
        self.metrics.extend(read.samples);
        if read.dropped > 0 {
            let why =
                format!("{} of its samples exceed the limit for one file and were not used", read.dropped);
            self.gap(name, &why, Some("query a shorter range or a larger step, for the affected pod only"));
        }
        if read.nameless > 0 {
            let why = format!(
                "{} of its series have no metric name: they are results of an expression, so their \
                meaning is unknown; query the metrics by name, without functions",
                read.nameless
            );
            self.gap(name, &why, None);
        }
    }

    /// The lines of a log store, in the order of time.
    fn export(&mut self, name: &str, export: exports::Export, from: Option<&SiftedFrom>) {
        let of_file = |line: &u64| {
            let kept = from.and_then(|f| f.numbers.get(usize::try_from(line.checked_sub(1)?).ok()?));
            Some(kept.copied().unwrap_or(*line))
        };
        self.logs.push(LogSource {
            name: name.to_owned(),
            role: role(name),
            prefix: prefix::of(export.text.as_bytes()),
            numbers: Some(export.numbers.iter().filter_map(of_file).collect()),
            sifted: from.is_some(),
            written: from.map_or(0, |f| f.lines),
            bytes: export.text.into_bytes().into(),
            kernel: false,
        });
    }

    /// The kept lines of a large log. What was dropped says what is read already, so that nothing is missing of it.
    fn sifted(&mut self, name: &str, bytes: Vec<u8>, kernel: bool, from: SiftedFrom) {
        self.logs.push(LogSource {
            name: name.to_owned(),
            role: role(name),
            prefix: prefix::of(&bytes),
            numbers: Some(from.numbers),
            sifted: true,
            written: from.lines,
            bytes: bytes.into(),
            kernel,
        });
    }

    /// Reads what can be read of an object that is broken or cut out of one; whether anything was.
    fn scraps(&mut self, file: &RawFile) -> bool {
        if file.bytes.len() > scrap::MAX_TEXT {
            return false;
        }
        let Ok(text) = std::str::from_utf8(&file.bytes) else { return false };
        let lines: Vec<&str> = text.lines().collect();
        let before = self.pasted.len() + self.events.len();
        scrap::read(self, &lines, 1, &file.name, None, false);
        self.pasted.len() + self.events.len() > before
    }

    /// Takes Kubernetes objects out of a text; what is left are lines of a log.
    fn text(&mut self, name: &str, bytes: Vec<u8>, kernel: bool) {
        let role = role(name);
        let objects = |b: &Self| {
            b.pods.len() + b.events.len() + b.nodes.len() + b.templates.len() + b.pasted.len() + b.gaps.len()
        };
        let before = objects(self);
        let logs = paste::read(self, name, bytes, kernel);
        if objects(self) == before
            && logs.iter().any(|(_, b)| stream::shows_a_pod(&String::from_utf8_lossy(b)))
        {
            let why = "it mentions a pod but contains no readable object, so it was read as a log; save \
            the object to its own file";
            self.gap(name, why, Some("kubectl get pod POD -o json > pod.json"));
        }
        for (kernel, bytes) in logs {
            let (bytes, numbers) = match wrap::join(&bytes) {
                Some((bytes, numbers)) => (bytes, Some(numbers.into())),
                None => (bytes, None),
            };
            let prefix = prefix::of(&bytes);
            self.logs.push(LogSource {
                name: name.to_owned(),
                role,
                kernel,
                prefix,
                numbers,
                sifted: false,
                written: 0,
                bytes: bytes.into(),
            });
        }
    }
}

/// `kubectl logs --previous` answers with this sentence on standard output and exit status 0 when the log is gone:
/// people save it as a log.
fn unavailable_log(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes.get(..bytes.len().min(1024))?).ok()?.trim();
    let rest = text
        .strip_prefix("unable to retrieve container logs for ")
        .or_else(|| text.strip_prefix("Error from server (BadRequest): previous terminated container "))?;
    (text.lines().count() == 1).then(|| rest.chars().take(120).collect())
}

fn role(name: &str) -> Role {
    let lower = name.to_ascii_lowercase();
    // As bundles write it: a container, a pod or a namespace may be called `previous`.
    for part in lower.rsplit('/') {
        let part = part.trim_end_matches(".tail.log").trim_end_matches(".log");
        if part.ends_with(".current") {
            return Role::Current;
        }
        if part.ends_with(".previous") {
            return Role::Previous;
        }
    }
    let word = |w: &str| lower.split(|c: char| !c.is_ascii_alphanumeric()).any(|p| p == w);
    // A container may be called `preview`: whole words first.
    if word("current") && !word("previous") && !word("prev") {
        Role::Current
    } else if lower.contains("prev") {
        Role::Previous
    } else if lower.contains("peer") {
        Role::Peer
    } else if lower.contains("current") {
        Role::Current
    } else {
        Role::Unsaid
    }
}

#[cfg(test)]
mod tests {
    use super::role;
    use crate::evidence::{Bundle, RawFile, Role};

    fn bundle(files: &[(&str, &str)]) -> Bundle {
        Bundle::from_files(files.iter().map(|(n, t)| RawFile::new(*n, *t)).collect())
    }

    #[test]
    fn blocks_of_nuls_are_left_out_and_said() {
        let nuls = "\0".repeat(4000);
        let b = bundle(&[
            ("kernel.log", &format!("[1.0] a\n{nuls}[2.0] b\n")),
            ("zeros.log", &nuls),
            ("previous.log", "INFO \0fine\n"),
        ]);
        assert_eq!(b.files, ["kernel.log", "previous.log"]);
        assert_eq!(b.logs.iter().map(|l| l.bytes.iter().filter(|x| **x == 0).count()).sum::<usize>(), 0);
        assert_eq!(b.gaps.len(), 3, "{:?}", b.gaps);
        assert!(b.gaps[0].why.contains("4000 NUL"), "{:?}", b.gaps);
    }

    #[test]
    fn a_container_called_previous_has_a_current_log() {
        for (name, want) in [
            ("b/logs/previous.current.log", Role::Current),
            ("b/logs/previous.previous.log", Role::Previous),
            ("ns-previous-0/logs/vllm.current.log", Role::Current),
            ("ns-current-0/logs/vllm.previous.tail.log", Role::Previous),
            ("logs/previous.current/3.log.20261121-100000", Role::Current),
            ("previous.log", Role::Previous),
            ("current.log", Role::Current),
            ("preview.log", Role::Previous),
            ("vllm.log", Role::Unsaid),
        ] {
            assert_eq!(role(name), want, "{name}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_a_gap_and_the_rest_stays() {
        let b = bundle(&[
            ("pod.json", "{\"kind\": \"Pod\", \"metadata\""),
            ("core.bin", "\u{0}\u{1}\u{2}\u{0}\u{0}\u{3}"),
            ("empty.log", ""),
            ("previous.log", "unable to retrieve container logs for containerd://abc"),
            ("current.log", "INFO fine\n"),
        ]);
        assert_eq!(b.gaps.len(), 4, "{:?}", b.gaps);
        assert_eq!(b.logs.len(), 1);
        assert_eq!(b.files, ["current.log"]);
    }
}
