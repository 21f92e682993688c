//! Who a token belongs to and what they may do, asked of the API server (`TokenReview`, `SubjectAccessReview`). Nothing is kept
//! in the cluster by these.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::{Api, ApiError, path};

/// Whose token it is, in the API server's words.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct User {
    /// Name, like `system:serviceaccount:monitoring:dualplane-agent`.
    pub username: String,
    /// Its unique id.
    pub uid: String,
    /// Groups.
    pub groups: Vec<String>,
    /// Whatever else authorizers look at.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// What somebody may or may not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deed<'a> {
    /// `get`, `create`, …
    pub verb: &'a str,
    /// API group; empty for the core.
    pub group: &'a str,
    /// Resource.
    pub resource: &'a str,
    /// Namespace; `None`: in all of them.
    pub namespace: Option<&'a str>,
}

/// Whose token this is; `None` where it is nobody's, has expired or is for somebody else than this audience.
///
/// # Errors
/// See [`ApiError`]: the API server does not answer, or whoever asks may not ask.
pub async fn user(api: &Api, token: &str, audience: &str) -> Result<Option<User>, ApiError> {
    let asked = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token, "audiences": [audience]},
    });
    let answer = api.post(&path::cluster("authentication.k8s.io/v1", "tokenreviews"), &asked).await?;
    Ok(of_answer(&answer, audience))
}

fn of_answer(answer: &Value, audience: &str) -> Option<User> {
    let status = answer.get("status")?;
    let is_so = status.get("authenticated").and_then(Value::as_bool) == Some(true);
    // An authenticator that knows nothing of audiences names none: its tokens are for anybody.
    let audiences = status.get("audiences").and_then(Value::as_array)?;
    let for_us = audiences.iter().any(|a| a.as_str() == Some(audience));
    let user = User::deserialize(status.get("user")?).ok()?;
    (is_so && for_us && !user.username.is_empty()).then_some(user)
}

/// They may do this.
///
/// # Errors
/// See [`ApiError`].
pub async fn may(api: &Api, user: &User, deed: Deed<'_>) -> Result<bool, ApiError> {
    let mut attributes = json!({"verb": deed.verb, "group": deed.group, "resource": deed.resource});
    if let (Some(namespace), Some(all)) = (deed.namespace, attributes.as_object_mut()) {
        all.insert("namespace".to_owned(), namespace.into());
    }
    let asked = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": user.username, "uid": user.uid, "groups": user.groups, "extra": user.extra,
            "resourceAttributes": attributes,
        },
    });
    let answer = api.post(&path::cluster("authorization.k8s.io/v1", "subjectaccessreviews"), &asked).await?;
    Ok(answer.pointer("/status/allowed").and_then(Value::as_bool) == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_token_for_this_audience_is_somebodys() {
        let answer = |authenticated: bool, audiences: &[&str], name: &str| json!({"status": {"authenticated": authenticated, "audiences": audiences, "user": {"username": name, "groups": ["g"]}}});
        let user = of_answer(&answer(true, &["us", "others"], "a"), "us").unwrap();
        assert_eq!((user.username.as_str(), user.groups.len()), ("a", 1));
        for refused in [
            answer(false, &["us"], "a"),
            answer(true, &["others"], "a"),
            answer(true, &[], "a"),
            answer(true, &["us"], ""),
            json!({"status": {"authenticated": true, "user": {"username": "a"}}}),
            json!({}),
        ] {
            assert_eq!(of_answer(&refused, "us"), None, "{refused}");
        }
    }
}
