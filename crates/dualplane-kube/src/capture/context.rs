//! What every source needs to know of the pod.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use dualplane_core::evidence::RawFile;
use dualplane_core::knowledge::Knowledge;
use dualplane_core::redact::Redactor;
use dualplane_core::sift::Sifter;
use jiff::Timestamp;
use serde_json::Value;

use super::series::Access;
use super::shared::Shared;
use super::source::{Source, SourceResult, State};
use crate::api::{Api, path};
use crate::ends;
use crate::find::{statuses, text};
use crate::target::is_name;

/// What to capture beyond the cluster's own sources.
#[derive(Debug)]
pub struct Options {
    /// The moment of the capture.
    pub now: Timestamp,
    /// `--prometheus`.
    pub prometheus: Option<Access>,
    /// `--loki`.
    pub loki: Option<Access>,
}

/// One pod, and how to ask about it.
#[derive(Debug)]
pub struct Context<'a> {
    pub(super) api: &'a Api,
    pub(super) options: &'a Options,
    pub(super) pod: Value,
    pub(super) namespace: String,
    pub(super) pod_name: String,
    pub(super) node: String,
    /// When the last of its instances ended.
    pub(super) died_at: Option<Timestamp>,
    pub(super) sifter: Option<&'a Arc<Sifter>>,
    pub(super) shared: &'a Shared,
    redactor: RefCell<Redactor<'a>>,
}

impl<'a> Context<'a> {
    pub(super) fn new(
        api: &'a Api,
        pod: Value,
        options: &'a Options,
        knowledge: &'a Knowledge,
        sifter: Option<&'a Arc<Sifter>>,
        shared: &'a Shared,
    ) -> Self {
        let namespace = text(&pod, "/metadata/namespace");
        let pod_name = text(&pod, "/metadata/name");
        let node = text(&pod, "/spec/nodeName");
        let died_at = ends::last(&pod).and_then(|e| e.at);
        let redactor = RefCell::new(Redactor::new(knowledge));
        Self { api, options, pod, namespace, pod_name, node, died_at, sifter, shared, redactor }
    }

    /// A path of this pod: `log`, `proxy/…`.
    pub(super) fn pod_path(&self, below: &str) -> String {
        let pods = path::namespaced("v1", &self.namespace, "pods");
        format!("{}/{below}", path::named(&pods, &self.pod_name))
    }

    /// A path of the kubelet of its node, through the API server.
    pub(super) fn node_proxy(&self, below: &str) -> String {
        format!("{}/proxy/{below}", path::named(&path::cluster("v1", "nodes"), &self.node))
    }

    /// A file of objects, redacted.
    pub(super) fn json(&self, name: &str, mut value: Value) -> RawFile {
        self.redactor.borrow_mut().json(&mut value);
        let mut bytes = serde_json::to_vec_pretty(&value).unwrap_or_default();
        bytes.push(b'\n');
        RawFile::new(name, bytes)
    }

    /// A file of lines, redacted.
    pub(super) fn text(&self, name: &str, bytes: &[u8]) -> RawFile {
        let text = String::from_utf8_lossy(bytes);
        let masked = self.redactor.borrow_mut().text(&text).into_owned();
        RawFile::new(name, masked)
    }

    /// A sentence, redacted.
    pub(super) fn masked(&self, text: &str) -> String {
        self.redactor.borrow_mut().text(text).into_owned()
    }

    /// How often each rule of redaction masked something.
    pub(super) fn redacted(&self) -> BTreeMap<String, u64> {
        self.redactor.borrow().counts().clone()
    }

    /// The pod itself.
    pub(super) fn pod_file(&self) -> SourceResult {
        let file = self.json("pod.json", self.pod.clone());
        let source = Source::new("pod", State::Ok, file.bytes.len() as u64);
        SourceResult { source, files: vec![file], gaps: Vec::new() }
    }

    /// Statuses of all its containers, the pod's own first. Their names become names of files: one that no API server
    /// lets pass is left out.
    pub(super) fn statuses(&self) -> impl Iterator<Item = &Value> {
        statuses(&self.pod).filter(|s| is_name(&text(s, "/name")))
    }

    /// Whether a container of it runs now and may answer.
    pub(super) fn runs(&self) -> bool {
        self.statuses().any(|s| s.pointer("/state/running").is_some())
    }
}
