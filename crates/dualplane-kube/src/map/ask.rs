//! Asks engines who they are, through the API server: no port is opened and no shell is run.

use dualplane_base::order::Order as _;
use std::time::Duration;

use dualplane_core::evidence::Gap;
use dualplane_report::map::{Answer, questions};
use futures_util::future::join_all;
use serde_json::Value;

use crate::api::{Api, ApiError};
use crate::capture::engine::pod_proxy;
use crate::capture::source::{Missing, gap};
use crate::find::text;

/// Pods whose engines are asked.
const MAX_PODS: usize = 32;
/// An engine answers these at once, or is too busy to be waited for.
const TIME: Duration = Duration::from_secs(4);
/// Of one answer: metrics of a busy engine have some hundred KiB.
const MAX_BYTES: usize = 4 << 20;

/// The answers of these pods' engines, and why some gave none.
pub async fn ask(api: &Api, pods: impl Iterator<Item = &Value>) -> (Vec<Answer>, Vec<Gap>) {
    let asked = pods.take(MAX_PODS).flat_map(|pod| {
        let (namespace, name) = (text(pod, "/metadata/namespace"), text(pod, "/metadata/name"));
        questions(pod).into_iter().map(move |q| (namespace.clone(), name.clone(), q))
    });
    let asked = asked.map(|(namespace, pod, question)| async move {
        let path = pod_proxy(&namespace, &pod, question.port, question.path);
        let body = api.get_bounded(&path, TIME, MAX_BYTES).await;
        (namespace, pod, question, path, body)
    });
    let (mut answers, mut gaps) = (Vec::new(), Vec::new());
    for (namespace, pod, question, path, body) in join_all(asked).await {
        let body = match body {
            Ok(body) => String::from_utf8_lossy(&body).into_owned(),
            Err(fault) => {
                let what = format!(
                    "answers of the engine in container {} of pod {namespace}/{pod}",
                    question.container
                );
                gaps.extend(unanswered(&what, &path, &fault));
                continue;
            }
        };
        answers.push(Answer { namespace, pod, question, body });
    }
    gaps.order();
    gaps.dedup_by(|a, b| a.what == b.what && a.why == b.why);
    (answers, gaps)
}

/// A path that this engine does not have says nothing; a locked door or a silence does.
fn unanswered(what: &str, path: &str, fault: &ApiError) -> Option<Gap> {
    let command = Some(format!("kubectl get --raw {path}"));
    match fault {
        ApiError::Unauthorized(_) => Some(Gap {
            what: what.to_owned(),
            why: "it requires an API key, which the API server's proxy does not forward".into(),
            command: None,
        }),
        ApiError::Forbidden { .. } | ApiError::TimedOut(_) | ApiError::Busy { .. } => {
            Some(gap(Missing { what: what.to_owned(), command, wanted: true }, fault))
        }
        _ => None,
    }
}
