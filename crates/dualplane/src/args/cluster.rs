//! Flags that every command with a cluster takes, as kubectl spells them.

use std::path::PathBuf;
use std::time::Duration;

#[cfg(feature = "live")]
use dualplane_kube::access::Access;
use jiff::SignedDuration;

/// The heading of these flags. Each names it for itself: a heading for the next ones would go on over the flags of the
/// command that takes these in.
const CLUSTER: &str = "Cluster";

#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ClusterArgs {
    /// Kubernetes namespace
    #[arg(short, long, value_name = "NAMESPACE", help_heading = CLUSTER)]
    pub(crate) namespace: Option<String>,
    /// Kubeconfig context
    #[arg(long, value_name = "NAME", help_heading = CLUSTER)]
    pub(crate) context: Option<String>,
    /// Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config]
    #[arg(long, value_name = "FILE", help_heading = CLUSTER)]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// User to impersonate
    #[arg(long = "as", value_name = "USER", help_heading = CLUSTER)]
    pub(crate) impersonate: Option<String>,
    /// Group to impersonate; repeatable
    #[arg(long = "as-group", value_name = "GROUP", requires = "impersonate", help_heading = CLUSTER)]
    pub(crate) impersonate_groups: Vec<String>,
    /// Time limit for one request, including logs, for example 5s or 1m
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = CLUSTER)]
    pub(crate) request_timeout: Option<Duration>,
}

#[cfg(feature = "live")]
impl ClusterArgs {
    /// What the adapter takes.
    pub(crate) fn access(&self) -> Access {
        Access {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            namespace: self.namespace.clone(),
            impersonate: self.impersonate.clone(),
            impersonate_groups: self.impersonate_groups.clone(),
            timeout: self.request_timeout,
        }
    }
}

/// `500ms`, `5s`, `1m`, or seconds as a number, as kubectl takes them.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let odd = || format!("{text} is not a duration; use a form such as 5s, 1m or 500ms");
    // Bare digits are seconds.
    let time = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => text.parse::<SignedDuration>().ok().and_then(|t| t.try_into().ok()).ok_or_else(odd)?,
    };
    if time.is_zero() || time > Duration::from_secs(24 * 3600) {
        return Err("the duration must be between 1ms and 24h".into());
    }
    Ok(time)
}

/// Stores to ask for the time before the death.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct StoreArgs {
    /// Prometheus to query for host RAM and VRAM around the failure, for example http://HOST:9090 (token in
    /// the file that $DUALPLANE_PROMETHEUS_TOKEN_FILE names; password of a user in the URL likewise)
    #[arg(long, value_name = "URL", help_heading = CLUSTER)]
    pub(crate) prometheus: Option<String>,
    /// Loki to query for log lines that the kubelet no longer has, for example http://HOST:3100 (token in
    /// the file that $DUALPLANE_LOKI_TOKEN_FILE names)
    #[arg(long, value_name = "URL", help_heading = CLUSTER)]
    pub(crate) loki: Option<String>,
}

/// What of a cluster a command is about, besides its targets.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct SelectArgs {
    /// Label selector, for example app=vllm
    #[arg(short = 'l', long, value_name = "SELECTOR", help_heading = CLUSTER)]
    pub(crate) selector: Option<String>,
    /// Search all namespaces
    #[arg(short = 'A', long, help_heading = CLUSTER)]
    pub(crate) all_namespaces: bool,
    /// Only pods that restarted, failed or cannot start
    #[arg(long, help_heading = CLUSTER)]
    pub(crate) failed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_kubectl_reads_them() {
        assert_eq!(duration("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(duration("30"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        for bad in ["", "s", "5x", "-1s", "0", "99h", "1d"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
