//! A model's configuration from Hugging Face, only with `--online`.

use std::time::Duration;

use dualplane_plan::host::Checkpoint;

use super::Texts;
use crate::commands::Failure;
use crate::secret;

/// Where `HF_ENDPOINT` names no other host.
const ENDPOINT: &str = "https://huggingface.co";
/// The index of the largest checkpoints has some 10 MiB.
const MAX_BODY: u64 = 64 << 20;
/// For one file, with connecting.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Fetches what decides memory; weights are never fetched. Returns the address too, as the source of the facts.
pub(super) fn read(id: &str) -> Result<(Texts, String), Failure> {
    if !is_id(id) {
        let why = "this is not a Hugging Face model ID (organisation/name)".into();
        return Err(Failure::Online { what: id.into(), why });
    }
    let var = |name: &str| std::env::var(name).ok().map(|v| v.trim().to_owned()).filter(|v| !v.is_empty());
    let endpoint = var("HF_ENDPOINT").unwrap_or_else(|| ENDPOINT.into());
    let base = format!("{}/{id}/resolve/main", endpoint.trim_end_matches('/'));
    let token = secret::HUGGING_FACE.read()?.or_else(|| var("HUGGING_FACE_HUB_TOKEN"));
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        .http_status_as_error(false)
        .user_agent(concat!("dualplane/", env!("CARGO_PKG_VERSION")))
        .build();
    let agent: ureq::Agent = config.into();
    let get = |file: &str| fetch(&agent, &format!("{base}/{file}"), token.as_deref());
    let address = format!("{base}/config.json");
    let config = get("config.json")?
        .ok_or_else(|| Failure::Online { what: address.clone(), why: "there is no such file".into() })?;
    let texts = Texts {
        config,
        hf_quant_config: get("hf_quant_config.json")?,
        safetensors_index: get("model.safetensors.index.json")?,
        files: Checkpoint::default(),
        named: false,
    };
    Ok((texts, address))
}

/// `organisation/name` of the characters that ids have, so that no other path is asked for.
fn is_id(id: &str) -> bool {
    let good = |part: &str| {
        let first = part.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        first && part.len() <= 96 && part.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    let parts: Vec<&str> = id.split('/').collect();
    matches!(parts.len(), 1 | 2) && parts.iter().all(|p| good(p))
}

/// A file as text; `None`: there is none.
fn fetch(agent: &ureq::Agent, url: &str, token: Option<&str>) -> Result<Option<String>, Failure> {
    let failed = |why: String| Failure::Online { what: url.to_owned(), why };
    let mut request = agent.get(url);
    if let Some(token) = token {
        request = request.header("Authorization", format!("Bearer {token}"));
    }
    let mut response = request.call().map_err(|e| failed(e.to_string()))?;
    match response.status().as_u16() {
        200 => {
            let body = response.body_mut().with_config().limit(MAX_BODY).read_to_string();
            body.map(Some).map_err(|e| failed(e.to_string()))
        }
        404 => Ok(None),
        401 | 403 => {
            let why = if token.is_some() {
                "HF_TOKEN may not read it"
            } else {
                "it is private or gated; set HF_TOKEN"
            };
            Err(failed(why.into()))
        }
        other => Err(failed(format!("status {other}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_are_asked_for() {
        for (id, good) in [
            ("Qwen/Qwen3-8B", true),
            ("gpt2", true),
            ("../etc/passwd", false),
            ("a/b/c", false),
            ("a/..", false),
            ("a/b?c", false),
            ("", false),
            ("http://x/y", false),
        ] {
            assert_eq!(is_id(id), good, "{id}");
        }
    }
}
