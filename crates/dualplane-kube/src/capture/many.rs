//! Several pods, some at a time, handed on in their order.

use std::sync::Arc;

use dualplane_core::knowledge::Knowledge;
use dualplane_core::sift::Sifter;
use futures_util::StreamExt;
use futures_util::stream;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::again::as_it_is;
use super::{Captured, Options, Shared, capture};
use crate::api::Api;

/// Pods at a time: each holds some MiB of logs, and requests are bounded elsewhere.
const AT_ONCE: usize = 4;
/// Pods that are done and wait for one before them, whose log is large, besides those at work.
const WINDOW: usize = 24;

/// Captures pods and hands each on as soon as those before it are done. `progress` is told of each source: which pod
/// it is of, its name, how many of the pod's sources have ended, and of how many.
pub async fn capture_all<E>(
    api: &Api,
    pods: Vec<Value>,
    options: &Options,
    knowledge: &Knowledge,
    sifter: Option<&Arc<Sifter>>,
    progress: &dyn Fn(usize, &str, usize, usize),
    mut each: impl FnMut(Captured) -> Result<(), E>,
) -> Result<(), E> {
    let shared = Shared::of(&pods);
    let shared = &shared;
    let places = &Semaphore::new(AT_ONCE);
    let work = pods.into_iter().enumerate().map(|(i, pod)| async move {
        // The semaphore is never closed.
        let _place = places.acquire().await.ok();
        let show = |source: &str, done: usize, of: usize| progress(i, source, done, of);
        // Those that waited were listed minutes ago.
        let pod = if i < AT_ONCE { pod } else { as_it_is(api, &pod).await.unwrap_or(pod) };
        capture(api, pod, options, knowledge, sifter, shared, &show).await
    });
    let mut work = std::pin::pin!(stream::iter(work).buffered(WINDOW));
    while let Some(captured) = work.next().await {
        each(captured)?;
    }
    Ok(())
}
