//! One question to the kubelet, within a time and a size.

use std::path::Path;
use std::time::Duration;

use dualplane_base::device_id::is_gpu;
use dualplane_base::text::printable;
use http::uri::PathAndQuery;
use tonic::client::Grpc;
use tonic::transport::Endpoint;
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use super::message::{ListRequest, ListResponse, devices};
use super::{KubeletGap, PodDevices};

/// The kubelet answers from memory, in a millisecond. One that is busy with a node in trouble is asked again later.
pub(super) const DEADLINE: Duration = Duration::from_secs(2);
/// 250 pods with three containers each are some 200 KiB. A message of nothing but empty messages takes some 40 times its
/// size while it is read, which must fit into the agent's limit.
pub(super) const MAX_ANSWER: usize = 2 << 20;
/// Bytes that may be under way.
const WINDOW: u32 = 256 << 10;
/// gRPC's own headers are some hundred bytes.
const MAX_HEADERS: u32 = 16 << 10;
/// Characters of a foreign error that are kept.
const MAX_WHY: usize = 200;

const LIST: &str = "/v1.PodResourcesLister/List";

/// GPUs of all containers of the node, as the kubelet at a socket gave them. Waits for at most two seconds.
///
/// # Errors
/// Why it does not tell.
pub fn list(socket: &Path) -> Result<Vec<PodDevices>, KubeletGap> {
    let shown = socket.display().to_string();
    // Its folder is root's alone: to others it is not absent, but closed.
    if std::fs::symlink_metadata(socket).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound) {
        return Err(KubeletGap::NoSocket(shown));
    }
    let path =
        socket.to_str().ok_or_else(|| KubeletGap::Unreachable(format!("{shown} is not valid UTF-8")))?;
    let broken = |e: &dyn std::error::Error| KubeletGap::Unreachable(why(&e.to_string()));
    // A runtime for each question: with it goes all that a server that never answers would leave behind.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| broken(&e))?;
    let answer = runtime.block_on(async { tokio::time::timeout(DEADLINE, ask(path)).await });
    match answer {
        Err(_) => Err(KubeletGap::Silent(DEADLINE.as_secs())),
        Ok(Err(status)) => Err(gap(&status)),
        // A claim's resource is its driver; network cards are claimed in the same way.
        Ok(Ok(all)) => Ok(devices(all, |r| is_gpu(r) || (!r.contains('/') && r.contains("gpu")))),
    }
}

async fn ask(path: &str) -> Result<ListResponse, Status> {
    let unreachable = |e: tonic::transport::Error| Status::unavailable(root(&e));
    let endpoint = Endpoint::from_shared(format!("unix://{path}")).map_err(unreachable)?;
    let endpoint = endpoint
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .http2_max_header_list_size(MAX_HEADERS);
    let channel = endpoint.connect().await.map_err(unreachable)?;
    let mut grpc = Grpc::new(channel).max_decoding_message_size(MAX_ANSWER);
    grpc.ready().await.map_err(unreachable)?;
    let codec = ProstCodec::<ListRequest, ListResponse>::default();
    let answer = grpc.unary(Request::new(ListRequest {}), PathAndQuery::from_static(LIST), codec).await?;
    Ok(answer.into_inner())
}

fn gap(status: &Status) -> KubeletGap {
    match status.code() {
        Code::Unimplemented => KubeletGap::NoV1,
        // What tonic says of a message above its limit; the kubelet itself has no reason to.
        Code::OutOfRange => KubeletGap::TooLarge(MAX_ANSWER >> 20),
        Code::Unavailable | Code::Unknown | Code::Internal | Code::Cancelled => {
            KubeletGap::Unreachable(why(status.message()))
        }
        code => KubeletGap::Refused(why(&format!("{code:?}: {}", status.message()))),
    }
}

/// The reason beneath all wrappings: `transport error` alone says nothing.
fn root(e: &tonic::transport::Error) -> String {
    let mut deepest: &dyn std::error::Error = e;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

/// Foreign words, short and without controls.
fn why(text: &str) -> String {
    printable(text).chars().take(MAX_WHY).collect()
}
