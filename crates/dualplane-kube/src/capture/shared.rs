//! What several pods of one run have in common: a node's own sources are read once, however many of its pods died.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::rc::Rc;

use serde_json::Value;
use tokio::sync::OnceCell;

use crate::api::Fault;
use crate::find::text;

/// Bytes that were read, and how many there were before anything was left out.
pub(super) type Bytes = Rc<(Vec<u8>, u64)>;
type Cell = Rc<OnceCell<Result<Bytes, Fault>>>;

/// Answers of one run.
#[derive(Debug, Default)]
pub struct Shared {
    cells: RefCell<HashMap<String, Cell>>,
    /// Uids of the pods of the run, by node.
    uids: HashMap<String, Vec<String>>,
}

impl Shared {
    /// For these pods.
    #[must_use]
    pub fn of(pods: &[Value]) -> Self {
        let mut uids: HashMap<String, Vec<String>> = HashMap::new();
        for pod in pods {
            // A static pod's cgroup has the hash of its manifest for a uid.
            for uid in ["/metadata/uid", "/metadata/annotations/kubernetes.io~1config.hash"] {
                let uid = text(pod, uid);
                if !uid.is_empty() {
                    uids.entry(text(pod, "/spec/nodeName")).or_default().push(uid);
                }
            }
        }
        Self { cells: RefCell::default(), uids }
    }

    /// Of those on a node.
    pub(super) fn uids_on(&self, node: &str) -> Vec<String> {
        self.uids.get(node).cloned().unwrap_or_default()
    }

    /// What stands under a name, or what `read` brings: the first who asks reads, the others wait for it.
    pub(super) async fn once(
        &self,
        name: &str,
        read: impl Future<Output = Result<(Vec<u8>, u64), Fault>>,
    ) -> Result<Bytes, Fault> {
        let cell = Rc::clone(self.cells.borrow_mut().entry(name.to_owned()).or_default());
        cell.get_or_init(|| async { read.await.map(Rc::new) }).await.clone()
    }
}
