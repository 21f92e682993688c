//! Errors as `application/problem+json` (RFC 9457): a sentence that says what to do.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

use crate::ingest::IngestError;
use crate::ingest::keep::KeepError;
use crate::store::StoreError;

/// An error as it is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Problem {
    /// `about:blank`: the status says the kind.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The status in words.
    title: String,
    /// The status.
    status: u16,
    /// What went wrong and what to do.
    detail: String,
    #[serde(skip)]
    retry_after: Option<u32>,
}

impl Problem {
    /// With this status.
    #[must_use]
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("error").to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            retry_after: None,
        }
    }

    /// The same again later may work.
    #[must_use]
    pub fn later(status: StatusCode, seconds: u32, detail: impl Into<String>) -> Self {
        Self { retry_after: Some(seconds), ..Self::new(status, detail) }
    }

    /// Nothing is there, or nothing that the caller may see: both look the same.
    #[must_use]
    pub fn missing() -> Self {
        Self::new(StatusCode::NOT_FOUND, "there is no such incident, or it is not yours to see")
    }

    /// Who may not do this.
    #[must_use]
    pub fn forbidden(what: &str) -> Self {
        let detail = format!("this token may not {what} here: ask for another role or namespace");
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    /// Bad input.
    #[must_use]
    pub fn bad(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// Its status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// What went wrong.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

impl From<StoreError> for Problem {
    fn from(e: StoreError) -> Self {
        match e {
            StoreError::Away(_) => Self::later(StatusCode::SERVICE_UNAVAILABLE, 5, e.to_string()),
            StoreError::Refused(_) => Self::new(StatusCode::UNPROCESSABLE_ENTITY, e.to_string()),
            StoreError::Content(_) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, e.to_string()),
        }
    }
}

impl From<KeepError> for Problem {
    fn from(e: KeepError) -> Self {
        let later = |seconds, detail| Self::later(StatusCode::SERVICE_UNAVAILABLE, seconds, detail);
        match e {
            KeepError::Forbidden => Self::forbidden("send incidents of this namespace"),
            KeepError::Taken => Self::new(StatusCode::CONFLICT, e.to_string()),
            KeepError::Report(_) | KeepError::Unjudged(_) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, e.to_string())
            }
            KeepError::Disk(_) | KeepError::Shelf(_) => later(30, e.to_string()),
            KeepError::Ingest(IngestError::Busy) => later(1, format!("{e}: send it again")),
            KeepError::Ingest(IngestError::Store(e)) => e.into(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
