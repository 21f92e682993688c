# The cluster's certificates and kubeconfigs.
# shellcheck shell=bash

# $1: name of the files, $2: subject, $3: subject alternative names (for servers).
certificate() {
    local pki=$STATE/pki use=clientAuth
    [ -z "${3:-}" ] || use=serverAuth,clientAuth
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
        -keyout "$pki/$1.key" -subj "$2" 2>/dev/null |
        openssl x509 -req -days 30 -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -CAserial "$pki/$1.srl" -CAcreateserial \
            -out "$pki/$1.crt" -extfile <(
                echo "extendedKeyUsage=$use"
                [ -z "${3:-}" ] || echo "subjectAltName=$3"
            ) 2>/dev/null || die "no certificate for $1"
}

# $1: file, $2: certificate of the user, $3: URL
kubeconfig() {
    local pki=$STATE/pki
    cat >"$1" <<YAML
apiVersion: v1
kind: Config
clusters:
- name: e2e
  cluster: {server: "$3", certificate-authority-data: $(base64 -w0 "$pki/ca.crt")}
users:
- name: $2
  user: {client-certificate-data: $(base64 -w0 "$pki/$2.crt"), client-key-data: $(base64 -w0 "$pki/$2.key")}
contexts:
- name: e2e
  context: {cluster: e2e, user: $2, namespace: default}
current-context: e2e
YAML
    chmod 600 "$1"
}

certificates() {
    local pki=$STATE/pki name
    mkdir -p "$pki"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=dualplane-e2e \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign \
        -keyout "$pki/ca.key" -out "$pki/ca.crt" 2>/dev/null || die "openssl makes no CA"
    openssl genrsa -out "$pki/service-accounts.key" 2048 2>/dev/null
    openssl rsa -in "$pki/service-accounts.key" -pubout -out "$pki/service-accounts.pub" 2>/dev/null
    certificate apiserver /CN=kube-apiserver \
        "DNS:kubernetes.default.svc,DNS:kubernetes.default,DNS:localhost,IP:$SERVICE_IP,IP:$NODE_IP,IP:127.0.0.1" &
    certificate kubelet-server "/O=system:nodes/CN=system:node:$NODE" "DNS:$NODE,IP:$NODE_IP,IP:127.0.0.1" &
    certificate admin /O=system:masters/CN=admin &
    certificate kubelet "/O=system:nodes/CN=system:node:$NODE" &
    certificate controller-manager /CN=system:kube-controller-manager &
    certificate scheduler /CN=system:kube-scheduler &
    wait
    for name in admin kubelet controller-manager scheduler; do
        kubeconfig "$STATE/$name.kubeconfig" $name "$API"
    done
    # The same cluster through the fault proxy.
    kubeconfig "$STATE/faults.kubeconfig" admin "https://$NODE_IP:$FAULTS_PORT"
}
