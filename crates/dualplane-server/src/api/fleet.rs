//! Statistics.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use dualplane_incidents::{Dimension, Filter, Fleet};
use http::HeaderMap;

use super::{json, reading};
use crate::app::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::store::{self, Realm, Scope, Span};

/// What a fleet may be narrowed by.
///
/// # Errors
///
/// Where the query holds anything else: figures of more than was asked for would be wrong.
pub fn span(query: Option<&str>, caller: &Caller) -> Result<Span, Problem> {
    let scope = reading(caller)?;
    let filter = Filter::parse(query.unwrap_or("")).map_err(|e| Problem::bad(e.to_string()))?;
    let only = Filter { since: None, any: Default::default(), ..filter.clone() };
    let narrow = [Dimension::Cluster, Dimension::Namespace];
    if only != Filter::default() || filter.any.keys().any(|d| !narrow.contains(d)) {
        return Err(Problem::bad("statistics can be narrowed by since, cluster and namespace"));
    }
    let values = |d| -> Vec<Option<String>> {
        match filter.any.get(&d) {
            Some(v) => v.iter().cloned().map(Some).collect(),
            None => vec![None],
        }
    };
    let asked: Vec<Realm> = values(Dimension::Cluster)
        .into_iter()
        .flat_map(|cluster| {
            let one = move |namespace| Realm { cluster: cluster.clone(), namespace };
            values(Dimension::Namespace).into_iter().map(one)
        })
        .collect();
    Ok(Span { since: filter.since, scope: both(scope, asked) })
}

/// What lies in the caller's namespaces and in those that are asked for.
fn both(scope: Scope, asked: Vec<Realm>) -> Scope {
    let all = asked.iter().any(|r| r.cluster.is_none() && r.namespace.is_none());
    let Scope::Some(own) = scope else {
        return if all { Scope::All } else { Scope::Some(asked) };
    };
    // `None`: they exclude each other.
    let meet = |a: &Option<String>, b: &Option<String>| match (a, b) {
        (Some(a), Some(b)) => (a == b).then(|| Some(a.clone())),
        (a, b) => Some(a.clone().or_else(|| b.clone())),
    };
    let pairs = own.iter().flat_map(|o| asked.iter().map(move |a| (o, a)));
    let met = pairs.filter_map(|(o, a)| {
        Some(Realm { cluster: meet(&o.cluster, &a.cluster)?, namespace: meet(&o.namespace, &a.namespace)? })
    });
    Scope::Some(met.collect())
}

/// Shares by model, image, version, node, GPU and driver; what dies most; the history of cards.
#[utoipa::path(
    get,
    operation_id = "read_fleet",
    path = "/v1/fleet",
    params(
        ("since" = Option<String>, Query, description = "From the beginning of this day in UTC, RFC 3339"),
        ("cluster" = Option<Vec<String>>, Query, description = "Cluster"),
        ("namespace" = Option<Vec<String>>, Query, description = "Namespace"),
    ),
    responses((status = 200, description = "The statistics", body = Fleet), (status = 400, description = "A key or value that there is not", body = Problem))
)]
pub async fn fleet(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let span = span(query.as_deref(), &caller)?;
    Ok(json(&headers, &store::fleet(&*app.store, &span).await?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_never_widens_what_a_caller_sees() {
        let realm = |c: Option<&str>, n: Option<&str>| Realm {
            cluster: c.map(str::to_owned),
            namespace: n.map(str::to_owned),
        };
        let options = [None, Some("a"), Some("b")];
        let realms: Vec<Realm> =
            options.iter().flat_map(|c| options.iter().map(move |n| realm(*c, *n))).collect();
        for own in &realms {
            for asked in &realms {
                let met = both(Scope::Some(vec![own.clone()]), vec![asked.clone()]);
                for (c, n) in [("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")] {
                    let wanted = Scope::Some(vec![own.clone()]).allows(c, n)
                        && Scope::Some(vec![asked.clone()]).allows(c, n);
                    assert_eq!(met.allows(c, n), wanted, "{own:?} {asked:?} {c} {n}");
                }
            }
        }
    }
}
