//! What several pods of one run have in common: a node's own sources are read once, however many of its pods died.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::rc::Rc;

use tokio::sync::OnceCell;

use crate::api::Fault;

/// Bytes that were read, and how many there were before anything was left out.
pub(super) type Bytes = Rc<(Vec<u8>, u64)>;
type Cell = Rc<OnceCell<Result<Bytes, Fault>>>;

/// Answers of one run.
#[derive(Debug, Default)]
pub struct Shared {
    cells: RefCell<HashMap<String, Cell>>,
}

impl Shared {
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
