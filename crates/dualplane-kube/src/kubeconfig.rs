//! Kubeconfig files: YAML into values by the reader that all our YAML has, and these into the client's types.
//!
//! The client would read them with a YAML library of its own, once more for each of its types: a third of a MiB of program.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use kube_client::config::{Kubeconfig, KubeconfigError};
use serde_json::Value;

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KubeconfigFault {
    /// Nobody names a file, or the one named is not there.
    #[error("no kubeconfig at {0}")]
    Missing(PathBuf),
    #[error("{0}: {1}")]
    Unreadable(PathBuf, std::io::Error),
    #[error("{0}: {1}")]
    Wrong(PathBuf, String),
    #[error("{0}: {1}")]
    Merge(PathBuf, KubeconfigError),
}

/// The file that is named.
pub(crate) fn of_file(path: &Path) -> Result<Kubeconfig, KubeconfigFault> {
    let bytes = std::fs::read(path).map_err(|e| match e.kind() {
        ErrorKind::NotFound => KubeconfigFault::Missing(path.into()),
        _ => KubeconfigFault::Unreadable(path.into(), e),
    })?;
    let dir = path.parent().unwrap_or(Path::new(""));
    parse(&bytes, dir).map_err(|e| match e {
        Fault::Text(why) => KubeconfigFault::Wrong(path.into(), why),
        Fault::Merge(e) => KubeconfigFault::Merge(path.into(), e),
    })
}

/// The files of `$KUBECONFIG` that are there, merged: kubectl passes over those that are not. Without the variable, the file of
/// the home folder.
pub(crate) fn of_environment() -> Result<Kubeconfig, KubeconfigFault> {
    let Some(list) = std::env::var_os("KUBECONFIG").filter(|l| !l.is_empty()) else {
        let home = std::env::home_dir().unwrap_or_default();
        return of_file(&home.join(".kube").join("config"));
    };
    let mut merged: Option<Kubeconfig> = None;
    for path in std::env::split_paths(&list).filter(|p| p.exists()) {
        let file = of_file(&path)?;
        merged = Some(match merged {
            Some(first) => first.merge(file).map_err(|e| KubeconfigFault::Merge(path, e))?,
            None => file,
        });
    }
    merged.ok_or_else(|| KubeconfigFault::Missing(list.into()))
}

#[derive(Debug)]
enum Fault {
    Text(String),
    Merge(KubeconfigError),
}

/// The documents of a file, merged, with paths as from its folder.
fn parse(bytes: &[u8], dir: &Path) -> Result<Kubeconfig, Fault> {
    let text = text(bytes).ok_or_else(|| Fault::Text("the kubeconfig is not text".into()))?;
    // `yes` and `off` are names here, as for everybody who writes them.
    let options = serde_saphyr::options! { strict_booleans: true };
    let documents = serde_saphyr::from_multiple_with_options::<Value>(&text, options).map_err(|e| {
        // Below its first line it prints the lines around the place, with tokens in them.
        let why = e.to_string();
        Fault::Text(format!("the kubeconfig is not valid YAML: {}", why.lines().next().unwrap_or_default()))
    })?;
    let mut merged: Option<Kubeconfig> = None;
    for document in documents.into_iter().filter(|d| !d.is_null()) {
        let mut config: Kubeconfig = serde_json::from_value(document)
            .map_err(|e| Fault::Text(format!("this is no kubeconfig: {}", without_values(&e.to_string()))))?;
        from_folder(&mut config, dir);
        merged = Some(match merged {
            Some(first) => first.merge(config).map_err(Fault::Merge)?,
            None => config,
        });
    }
    Ok(merged.unwrap_or_default())
}

/// UTF-8, or what PowerShell writes.
fn text(bytes: &[u8]) -> Option<String> {
    let wide = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes.chunks_exact(2).filter_map(|c| Some(unit(c.try_into().ok()?))).collect();
        String::from_utf16(&units).ok()
    };
    match bytes {
        [0xFF, 0xFE, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => wide(rest, u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] => String::from_utf8(rest.into()).ok(),
        all => String::from_utf8(all.into()).ok(),
    }
}

/// What stands in quotes may be a token.
fn without_values(why: &str) -> String {
    why.split('"').enumerate().map(|(i, part)| if i % 2 == 0 { part } else { "…" }).collect()
}

/// Paths are meant from the folder of the file; of a plug-in only where it is a path, and not a name to look up.
fn from_folder(config: &mut Kubeconfig, dir: &Path) {
    let absolute = |path: &mut Option<String>| {
        let from = path.as_ref().filter(|p| Path::new(p).is_relative()).map(|p| dir.join(p));
        if let Some(from) = from.as_deref().and_then(Path::to_str) {
            *path = Some(from.to_owned());
        }
    };
    for cluster in config.clusters.iter_mut().filter_map(|c| c.cluster.as_mut()) {
        absolute(&mut cluster.certificate_authority);
    }
    for user in config.auth_infos.iter_mut().filter_map(|u| u.auth_info.as_mut()) {
        absolute(&mut user.client_certificate);
        absolute(&mut user.client_key);
        absolute(&mut user.token_file);
        if let Some(exec) = &mut user.exec
            && exec.command.as_ref().is_some_and(|c| c.contains(std::path::MAIN_SEPARATOR))
        {
            absolute(&mut exec.command);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
apiVersion: v1
kind: Config
current-context: on
clusters:
- name: c
  cluster: {server: 'https://h:6443', certificate-authority: pki/ca.crt, tls-server-name: n}
contexts:
- name: on
  context: {cluster: c, user: u, namespace: n}
users:
- name: u
  user:
    token: '123'
    tokenFile: t/token
    client-certificate: /abs/c.crt
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: ./bin/plugin
      args: [get-token]
      env: [{name: A, value: b}]
      interactiveMode: Never
- name: by-name
  user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: aws}}
---
contexts:
- name: second
  context: {cluster: c, user: by-name}
";

    fn same(bytes: &[u8]) -> Kubeconfig {
        parse(bytes, Path::new("/home/u/.kube")).unwrap()
    }

    #[test]
    fn a_file_is_read_as_kubectl_reads_it() {
        let config = same(FILE.as_bytes());
        assert_eq!(config.current_context.as_deref(), Some("on"), "a name, and no boolean");
        let contexts: Vec<&str> = config.contexts.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(contexts, ["on", "second"]);
        let cluster = config.clusters[0].cluster.as_ref().unwrap();
        assert_eq!(cluster.certificate_authority.as_deref(), Some("/home/u/.kube/pki/ca.crt"));
        assert_eq!(cluster.tls_server_name.as_deref(), Some("n"));
        let user = |i: usize| config.auth_infos[i].auth_info.as_ref().unwrap();
        assert_eq!(user(0).client_certificate.as_deref(), Some("/abs/c.crt"));
        assert_eq!(user(0).token_file.as_deref(), Some("/home/u/.kube/t/token"));
        let command = |i: usize| user(i).exec.as_ref().unwrap().command.clone().unwrap();
        assert_eq!(command(0), "/home/u/.kube/./bin/plugin");
        assert_eq!(command(1), "aws", "looked up in PATH");
    }

    /// The client's own reader, which is compiled into this test alone.
    #[test]
    fn it_says_what_the_client_s_own_reader_says() {
        let dir = std::env::temp_dir().join(format!("dualplane-kubeconfig-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("config");
        let json = serde_json::json!({"apiVersion": "v1", "kind": "Config", "clusters": [], "users": null, "x": {"y": 1}});
        for text in [FILE.to_owned(), json.to_string(), String::new(), "preferences: {}\n".into()] {
            std::fs::write(&path, &text).unwrap();
            let ours = serde_json::to_value(of_file(&path).unwrap()).unwrap();
            let theirs = serde_json::to_value(Kubeconfig::read_from(&path).unwrap()).unwrap();
            assert_eq!(ours, theirs, "{text}");
        }
        std::fs::remove_dir_all(&dir).unwrap();
        assert!(matches!(of_file(&path), Err(KubeconfigFault::Missing(_))));
    }

    #[test]
    fn files_of_windows_are_read() {
        let units: Vec<u16> = FILE.encode_utf16().collect();
        let le: Vec<u8> =
            [0xFF, 0xFE].into_iter().chain(units.iter().flat_map(|u| u.to_le_bytes())).collect();
        let be: Vec<u8> =
            [0xFE, 0xFF].into_iter().chain(units.iter().flat_map(|u| u.to_be_bytes())).collect();
        let bom: Vec<u8> = [0xEF, 0xBB, 0xBF].into_iter().chain(FILE.bytes()).collect();
        for bytes in [le, be, bom] {
            assert_eq!(same(&bytes).contexts.len(), 2);
        }
        assert!(parse(&[0xFF, 0xFE, 0x00, 0xD8], Path::new("")).is_err());
        assert!(parse(&[0xC0], Path::new("")).is_err());
    }

    #[test]
    fn an_error_does_not_say_a_token() {
        for wrong in [
            "users: [{name: u, user: geheim}]",
            "users: geheim",
            "users:\n- name: u\n  user: {token: geheim\n",
            "clusters: [{name: c, cluster: {server: [geheim]}}]",
        ] {
            let Err(Fault::Text(why)) = parse(wrong.as_bytes(), Path::new("")) else { panic!("{wrong}") };
            assert!(
                !why.contains("geheim")
                    && (why.contains("is no kubeconfig") || why.contains("not valid YAML")),
                "{why}"
            );
        }
    }
}
