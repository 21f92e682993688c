//! A cluster of a cloud has no keys: it gives its pods a role, in its own way. The real program, with a store and a giver of keys of a
//! few lines, as in Amazon's Pod Identity, Google's metadata of a machine and Azure's workload identity.

use std::path::Path;

use crate::bundles::Store;
use crate::harness::{Server, program};

/// As Google and Azure give it.
const TOKEN: &str = r#"{"access_token": "of-a-role", "expires_in": 3600, "token_type": "Bearer"}"#;

fn kept(store: &Store, home: &Path, args: &[&str], env: &[(&str, String)]) {
    let mut c = program();
    c.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(home.join("data")).args(args);
    // What this machine may have itself.
    for (name, _) in std::env::vars() {
        if ["AWS_", "GOOGLE_", "GCE_", "AZURE_"].iter().any(|p| name.starts_with(p)) {
            c.env_remove(name);
        }
    }
    c.envs(env.iter().cloned());
    let s = Server::of(c);
    let sum = crate::api::digest(crate::rights::LOG);
    let sent = s.ask("PUT", "/v1/incidents/a/bundle", &[("repr-digest", &sum)], crate::rights::LOG);
    assert_eq!(sent.status, 201, "{}", sent.text());
    assert_eq!(s.get("/v1/incidents/a/bundle").body, crate::rights::LOG);
    let objects = store.objects.lock().unwrap();
    assert!(
        objects.iter().any(|(path, bytes)| path.ends_with("fleet/x/a.bundle") && bytes == crate::rights::LOG)
    );
}

#[test]
fn amazons_pod_identity() {
    let home = tempfile::tempdir().unwrap();
    let given = &[(
        "/v1/credentials",
        "authorization: of the pod",
        r#"{"AccessKeyId": "role", "SecretAccessKey": "s", "Token": "session", "Expiration": "2099-01-01T00:00:00Z"}"#,
    )];
    let store = Store::that("x-amz-security-token: session", given);
    let at = store.start();
    let token = home.path().join("token");
    std::fs::write(&token, "of the pod").unwrap();
    let env = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", format!("{at}/v1/credentials")),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token.display().to_string()),
        ("AWS_REGION", "eu-central-1".to_owned()),
    ];
    kept(&store, home.path(), &["--bundles", "s3://fleet/x", "--bundles-endpoint", &at], &env);
}

#[test]
fn googles_metadata_of_the_machine() {
    let home = tempfile::tempdir().unwrap();
    let given =
        &[("/computeMetadata/v1/instance/service-accounts/default/token", "metadata-flavor: google", TOKEN)];
    let store = Store::that("authorization: bearer of-a-role", given);
    let at = store.start();
    let env = [("GCE_METADATA_HOST", at.replace("http://", "")), ("HOME", home.path().display().to_string())];
    kept(&store, home.path(), &["--bundles", "gs://fleet/x", "--bundles-endpoint", &at], &env);
}

#[test]
fn azures_workload_identity() {
    let home = tempfile::tempdir().unwrap();
    let given = &[("/tenant/oauth2/v2.0/token", "content-type: application/x-www-form-urlencoded", TOKEN)];
    let store = Store::that("authorization: bearer of-a-role", given);
    let at = store.start();
    let token = home.path().join("token");
    std::fs::write(&token, "of the pod").unwrap();
    let env = [
        ("AZURE_STORAGE_ACCOUNT_NAME", "acme".to_owned()),
        ("AZURE_CLIENT_ID", "client".to_owned()),
        ("AZURE_TENANT_ID", "tenant".to_owned()),
        ("AZURE_AUTHORITY_HOST", at.clone()),
        ("AZURE_FEDERATED_TOKEN_FILE", token.display().to_string()),
    ];
    kept(&store, home.path(), &["--bundles", "az://fleet/x", "--bundles-endpoint", &at], &env);
}
