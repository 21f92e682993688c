//! Whoever still sends hears the answer: what is left of a body that nobody read to its end flows past before the answer goes out.
//!
//! hyper closes a connection whose request was not read, and the kernel then tells the sender of a reset and not of the answer.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use dualplane_guard::body::drain;
use http::{Version, header};
use hyper::body::{Frame, SizeHint};

/// A body on loan: what is left of it comes back when the handler lets go of it.
struct Lent {
    body: Body,
    back: Arc<Mutex<Option<Body>>>,
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let body = std::mem::take(&mut self.body);
        if !body.is_end_stream() {
            *self.back.lock().unwrap_or_else(PoisonError::into_inner) = Some(body);
        }
    }
}

/// Lets the rest of a request pass by, while it flows.
pub(super) async fn pass_by(request: Request, next: Next) -> Response {
    // HTTP/2 ends the stream alone; who asks before it sends is told not to.
    let waits = request.headers().contains_key(header::EXPECT);
    if request.version() > Version::HTTP_11 || waits || request.body().is_end_stream() {
        return next.run(request).await;
    }
    let back = Arc::new(Mutex::new(None));
    let response = next.run(request.map(|body| Body::new(Lent { body, back: Arc::clone(&back) }))).await;
    let rest = back.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(rest) = rest {
        drain(rest, u64::MAX).await;
    }
    response
}
