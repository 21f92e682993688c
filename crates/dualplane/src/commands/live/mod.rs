//! Commands that ask a cluster. They run on one thread: what takes time is the network.

pub(crate) mod apply;
pub(crate) mod capture;
mod capture_url;
mod changes;
pub(crate) mod map;
pub(crate) mod pods;
mod review;
pub(crate) mod rollback;
pub(crate) mod workload;

use std::future::Future;

use dualplane_kube::api::Api;

use super::Failure;
use crate::args::ClusterArgs;

/// Runs what asks the cluster to its end.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::Runtime)?;
    runtime.block_on(work)
}

/// The cluster that the flags name.
pub(crate) async fn connect(args: &ClusterArgs) -> Result<Api, Failure> {
    Ok(args.access().connect().await?)
}
