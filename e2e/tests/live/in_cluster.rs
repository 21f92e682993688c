//! Inside a pod the service account is used, with the roles of deploy/rbac.yaml and nothing else.

use crate::harness::{binary, create, kubectl, root, until};

#[test]
fn a_pod_with_the_readers_role_triages_another() {
    let folder = binary();
    let (folder, name) = (
        folder.parent().unwrap().display().to_string(),
        folder.file_name().unwrap().to_string_lossy().into_owned(),
    );
    kubectl(&["apply", "-f", &root().join("deploy/rbac.yaml").to_string_lossy()]);
    create(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: e2e-kubelet}\n\
        roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: dualplane-kubelet}\n\
        subjects: [{kind: ServiceAccount, name: dualplane, namespace: default}]\n",
    );
    kubectl(&["delete", "pod", "e2e-in-cluster", "-n", "default", "--ignore-not-found", "--now"]);
    // The binary and the libraries that it links lie on the node, which is this machine.
    create(&format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: e2e-in-cluster, namespace: default}}\nspec:\n  serviceAccountName: dualplane\n  restartPolicy: Never\n  \
         containers:\n  - name: c\n    image: registry.local/busybox:1\n    imagePullPolicy: Never\n    \
         command: [/dp/{name}, triage, pod/pid1-oom, -n, serving, -o, json]\n    \
         volumeMounts: [{{name: dp, mountPath: /dp}}, {{name: lib, mountPath: /lib}}, {{name: lib64, mountPath: /lib64}}]\n  \
         volumes:\n  - {{name: dp, hostPath: {{path: {folder}}}}}\n  - {{name: lib, hostPath: {{path: /lib}}}}\n  - {{name: lib64, hostPath: {{path: /lib64}}}}\n"
    ));
    let phase =
        || kubectl(&["get", "pod", "e2e-in-cluster", "-n", "default", "-o", "jsonpath={.status.phase}"]);
    until("the pod does not end", || matches!(phase().as_str(), "Succeeded" | "Failed").then_some(()));
    let log = kubectl(&["logs", "e2e-in-cluster", "-n", "default"]);
    assert_eq!(phase(), "Succeeded", "{log}");
    assert!(log.contains("\"class\": \"host_oom_killed\""), "{log}");
    assert!(!log.contains("permission to"), "{log}");
    kubectl(&["delete", "pod", "e2e-in-cluster", "-n", "default", "--now"]);
    kubectl(&["delete", "clusterrolebinding", "e2e-kubelet"]);
}
