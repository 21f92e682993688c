//! `lint --live`: the objects of a cluster, list by list. None is kept once it was looked at.

use dualplane_base::json::str_at;
use dualplane_base::order::Order as _;
use dualplane_kube::api::{Api, ApiError, path};
use dualplane_lint::report::{Report, Unread};
use dualplane_lint::{Finding, Linter, Object, Source};

use super::scan;
use crate::args::LintArgs;
use crate::commands::Failure;
use crate::commands::live::{block_on, connect};

/// Lists with objects that rules look at. A cluster need not have those of operators. What KServe makes is among the
/// deployments.
const LISTS: &[(&str, &str)] = &[
    ("apps/v1", "deployments"),
    ("apps/v1", "statefulsets"),
    ("apps/v1", "daemonsets"),
    ("apps/v1", "replicasets"),
    ("batch/v1", "cronjobs"),
    ("batch/v1", "jobs"),
    ("v1", "pods"),
    ("autoscaling/v2", "horizontalpodautoscalers"),
    ("policy/v1", "poddisruptionbudgets"),
    ("argoproj.io/v1alpha1", "rollouts"),
    ("autoscaling.k8s.io/v1", "verticalpodautoscalers"),
    ("keda.sh/v1alpha1", "scaledobjects"),
    ("leaderworkerset.x-k8s.io/v1", "leaderworkersets"),
    ("monitoring.coreos.com/v1", "podmonitors"),
    ("ray.io/v1", "rayclusters"),
    ("ray.io/v1", "rayservices"),
];

/// Looks at all objects of a namespace, or of all.
pub(super) fn scan(
    args: &LintArgs,
    linter: &Linter,
    held: impl Fn(&Finding) -> bool + Sync,
) -> Result<Report, Failure> {
    let mut report = block_on(async {
        let api = connect(&args.cluster).await?;
        let mut report = Report::default();
        let place = if args.all_namespaces {
            "all namespaces".to_owned()
        } else {
            // A mistyped name must not look like "nothing found".
            let path = path::named(&path::cluster("v1", "namespaces"), api.namespace());
            if let Err(e @ ApiError::NotFound(_)) = api.object(&path).await {
                return Err(e.into());
            }
            format!("namespace {}", api.namespace())
        };
        for (version, resource) in LISTS {
            list(&api, (version, resource), args.all_namespaces, linter, &held, &mut report).await?;
        }
        report.live = Some(place);
        Ok(report)
    })?;
    scan::add(&mut report, linter.end(), &held);
    let by = |f: &Finding| {
        (f.namespace.clone(), f.kind.clone(), f.name.clone(), f.pointer.clone(), f.rule.clone())
    };
    report.findings.order_by_key(by);
    Ok(report)
}

async fn list(
    api: &Api,
    (version, resource): (&str, &str),
    everywhere: bool,
    linter: &Linter,
    held: &(impl Fn(&Finding) -> bool + Sync),
    report: &mut Report,
) -> Result<(), Failure> {
    let base = match everywhere {
        true => path::cluster(version, resource),
        false => path::namespaced(version, api.namespace(), resource),
    };
    let look = |value| {
        let source = Source { file: format!("live/{resource}"), document: 1, line: 1 };
        let object = Object::new(value, source);
        // What is being deleted needs no fix.
        if str_at(&object.value, "/metadata/deletionTimestamp").is_empty() {
            report.objects += 1;
            let outcome = linter.object(&object);
            scan::not_known(report, outcome.not_known.clone());
            scan::add(report, outcome, held);
        }
        None
    };
    let why = match api.list(&base, &[], look).await {
        Ok(listed) if listed.cut => "the list is too long; lint namespace by namespace".to_owned(),
        Ok(_) => return Ok(()),
        // The cluster has no such kind.
        Err(ApiError::NotFound(_)) => return Ok(()),
        Err(e) if e.is_fatal() => return Err(e.into()),
        Err(e) => e.to_string(),
    };
    report.unread.push(Unread { file: format!("live/{resource}"), document: 1, line: 1, why });
    Ok(())
}
