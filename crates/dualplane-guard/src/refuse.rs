//! Answers of the guard itself, in the shape that clients of OpenAI's API read.

use std::fmt;

use dualplane_admission::Refusal;
use dualplane_base::Class;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use hyper::body::Bytes;
use serde_json::json;

use crate::answer::Answer;

/// A request that gets no answer of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Status.
    pub status: u16,
    /// Stable word for it.
    pub code: &'static str,
    /// A sentence for people.
    pub message: String,
    /// When to come again, seconds.
    pub retry_after: Option<u64>,
}

impl Reply {
    /// With a sentence.
    #[must_use]
    pub fn new(status: u16, code: &'static str, message: impl fmt::Display) -> Self {
        Self { status, code, message: message.to_string(), retry_after: None }
    }

    /// A server ended while it worked on a request, or before it took it.
    #[must_use]
    pub fn died(server: &str, death: Option<Class>, sent: bool) -> Self {
        let what = if sent { "ended before it answered" } else { "does not take connections" };
        Self::lost(server, what, death, sent)
    }

    /// A server broke off in the middle of its answer.
    #[must_use]
    pub fn broke_off(server: &str, death: Option<Class>) -> Self {
        Self::lost(server, "broke off in the middle of its answer", death, true)
    }

    fn lost(server: &str, what: &str, death: Option<Class>, sent: bool) -> Self {
        let why = match death {
            None | Some(Class::Unknown) => String::new(),
            Some(Class::HostOomKilled) => ": the kernel killed it for its host RAM (OOM killer)".to_owned(),
            Some(class) => format!(": {class} by its node's agent"),
        };
        let status = if sent { 502 } else { 503 };
        let code = if sent { "server_died" } else { "server_down" };
        Self { retry_after: Some(5), ..Self::new(status, code, format!("the server {server} {what}{why}")) }
    }

    /// Type of the error as OpenAI names it.
    fn kind(&self) -> &'static str {
        match self.status {
            429 => "rate_limit_exceeded",
            400..=499 => "invalid_request_error",
            _ => "server_error",
        }
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> String {
        json!({"error": {"message": self.message, "type": self.kind(), "param": null, "code": self.code}})
            .to_string()
    }

    /// As an answer.
    #[must_use]
    pub fn answer(&self) -> Response<Answer> {
        let mut response = Response::new(Answer::whole(Bytes::from(self.body())));
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert("x-dualplane-code", HeaderValue::from_static(self.code));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<Refusal> for Reply {
    fn from(r: Refusal) -> Self {
        let code = r.code.word();
        Self { retry_after: r.retry_after, ..Self::new(r.code.status(), code, r) }
    }
}
