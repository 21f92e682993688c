//! What several pods of one run have in common: a node's own sources are read once, however many of its pods died.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::rc::Rc;

use serde_json::Value;
use tokio::sync::OnceCell;

use crate::api::ApiError;
use crate::find::text;

/// Bytes that were read, and how many there were before anything was left out.
pub(super) type Bytes = Rc<(Vec<u8>, u64)>;
type Cell = Rc<OnceCell<Result<Bytes, ApiError>>>;

/// Answers that are held: of some ten nodes, each with some MiB. A fleet's failed pods may lie on a thousand.
const MAX_ANSWERS: usize = 64;

/// Answers of one run.
#[derive(Debug, Default)]
pub struct Shared {
    cells: RefCell<HashMap<String, Cell>>,
    /// Their names, the oldest first.
    order: RefCell<VecDeque<String>>,
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
        Self { uids, ..Self::default() }
    }

    /// Of those on a node.
    pub(super) fn uids_on(&self, node: &str) -> Vec<String> {
        self.uids.get(node).cloned().unwrap_or_default()
    }

    /// What stands under a name, or what `read` brings: the first who asks reads, the others wait for it.
    pub(super) async fn once(
        &self,
        name: &str,
        read: impl Future<Output = Result<(Vec<u8>, u64), ApiError>>,
    ) -> Result<Bytes, ApiError> {
        let cell = self.cell(name);
        cell.get_or_init(|| async { read.await.map(Rc::new) }).await.clone()
    }

    fn cell(&self, name: &str) -> Cell {
        let mut cells = self.cells.borrow_mut();
        if let Some(cell) = cells.get(name) {
            return Rc::clone(cell);
        }
        let mut order = self.order.borrow_mut();
        // Who still reads or waits keeps the cell; whoever comes later asks again.
        if order.len() >= MAX_ANSWERS
            && let Some(oldest) = order.pop_front()
        {
            cells.remove(&oldest);
        }
        order.push_back(name.to_owned());
        Rc::clone(cells.entry(name.to_owned()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_node_is_asked_once_and_a_fleet_is_not_held() {
        let shared = Shared::default();
        let asked = RefCell::new(0);
        let read = || async {
            *asked.borrow_mut() += 1;
            Ok((Vec::new(), 0))
        };
        for _ in 0..3 {
            shared.once("node", read()).await.unwrap();
        }
        assert_eq!(*asked.borrow(), 1);
        for i in 0..1000 {
            shared.once(&format!("node-{i}"), read()).await.unwrap();
        }
        assert_eq!((shared.cells.borrow().len(), shared.order.borrow().len()), (MAX_ANSWERS, MAX_ANSWERS));
    }
}
