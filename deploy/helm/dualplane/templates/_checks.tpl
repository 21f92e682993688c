{{/*
Values that are well-formed and still cannot work. Each complaint says what to do; all of them are shown at once.
*/}}
{{- define "dualplane.checks" -}}
{{- $all := list -}}
{{- if .Values.agent.enabled -}}
{{- $all = concat $all (include "dualplane.checks.node" . | fromJsonArray) -}}
{{- $all = concat $all (include "dualplane.checks.sinks" . | fromJsonArray) -}}
{{- $all = concat $all (include "dualplane.checks.flags" . | fromJsonArray) -}}
{{- end -}}
{{- if and .Values.guard.enabled (not (contains "[[server]]" .Values.guard.config)) (not .Values.guard.services) -}}
{{- $all = append $all "guard.enabled: guard.config names no server. Add [[server]] with url = \"http://HOST:PORT\" to it, or name a Service in guard.services." -}}
{{- end -}}
{{- if contains "[[service]]" .Values.guard.config -}}
{{- $all = append $all "guard.config has a [[service]], which the guard would have no right to ask for. Name it in guard.services." -}}
{{- end -}}
{{- if and .Values.guard.sidecar.create (semverCompare "<1.36.0-0" .Capabilities.KubeVersion.Version) -}}
{{- $all = append $all (printf "guard.sidecar.create needs Kubernetes 1.36 with its MutatingAdmissionPolicy, and this is %s. Put the guard into your pods as in deploy/guard-sidecar.yaml." .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- if and .Values.guard.services (not .Values.guard.enabled) -}}
{{- $all = append $all "guard.services are for the gateway. Set guard.enabled: true." -}}
{{- end -}}
{{- if .Values.server.enabled -}}
{{- $all = concat $all (include "dualplane.checks.server" . | fromJsonArray) -}}
{{- end -}}
{{- $all = concat $all (include "dualplane.checks.access" . | fromJsonArray) -}}
{{- $all = concat $all (include "dualplane.checks.rules" . | fromJsonArray) -}}
{{- $all = concat $all (include "dualplane.checks.policies" . | fromJsonArray) -}}
{{- if $all -}}
{{- fail (printf "\n\n- %s\n" (join "\n- " $all)) -}}
{{- end -}}
{{- end }}

{{- define "dualplane.checks.node" -}}
{{- $a := .Values.agent -}}
{{- $all := list -}}
{{- $known := .Files.Get "gpu-labels.yaml" | fromYaml | keys | sortAlpha -}}
{{- if not (has $a.nodes (concat (list "any" "gpu") $known)) -}}
{{- $all = append $all (printf "agent.nodes: %q is unknown. Use any, gpu, %s; for other labels use any with agent.nodeSelector." $a.nodes (join ", " $known)) -}}
{{- end -}}
{{- if and (ne $a.nodes "any") (hasKey (default dict $a.affinity) "nodeAffinity") -}}
{{- $all = append $all "agent.nodes and agent.affinity.nodeAffinity both choose nodes. Set agent.nodes: any, or use agent.nodeSelector instead." -}}
{{- end -}}
{{- range $key := list "capabilities" "seccompProfile" "appArmorProfile" -}}
{{- if and $a.privileged (not (kindIs "invalid" (index $a $key))) -}}
{{- $all = append $all (printf "agent.privileged: true gives everything, and agent.%s would mean nothing. Set agent.privileged: false, or remove agent.%s." $key $key) -}}
{{- end -}}
{{- end -}}
{{- if and (not $a.privileged) $a.driver.path -}}
{{- $all = append $all "agent.driver.path needs agent.privileged: true: without it, the device cgroup refuses /dev/nvidia*. Use agent.runtimeClassName instead." -}}
{{- end -}}
{{- if and $a.driver.path $a.runtimeClassName -}}
{{- $all = append $all "agent.driver.path and agent.runtimeClassName both bring NVML, maybe of two versions. Set one of them." -}}
{{- end -}}
{{- range $key := list "name" "instance" "component" -}}
{{- $label := printf "app.kubernetes.io/%s" $key -}}
{{- if or (hasKey (default dict $a.podLabels) $label) (hasKey (default dict $.Values.labels) $label) -}}
{{- $all = append $all (printf "labels and agent.podLabels: %s is the chart's own; the DaemonSet finds its pods by it. Remove it." $label) -}}
{{- end -}}
{{- end -}}
{{- if and $a.priorityQuota.create (not $a.priorityClassName) -}}
{{- $all = append $all "agent.priorityQuota is a quota for agent.priorityClassName, which is empty. Set it, or agent.priorityQuota.create: false." -}}
{{- end -}}
{{- if and (not $a.serviceAccount.create) (not $a.serviceAccount.name) -}}
{{- $all = append $all "agent.serviceAccount.create: false needs agent.serviceAccount.name: the namespace's default account would get the agent's rights." -}}
{{- end -}}
{{- toJson $all -}}
{{- end }}

{{- define "dualplane.checks.sinks" -}}
{{- $send := .Values.agent.sinks.send -}}
{{- $all := list -}}
{{- if not $send.urls -}}
{{- range $key := list "tokenSecret" "headersSecret" "caConfigMap" -}}
{{- if (get $send $key).name -}}
{{- $all = append $all (printf "agent.sinks.send.%s is for agent.sinks.send.urls, which is empty. Add a URL, or remove it." $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $send.urls -}}
{{- if and (or $send.tokenSecret.name $send.tokenAudience) (not $send.tokenInClear) (hasPrefix "http://" .) -}}
{{- $all = append $all (printf "agent.sinks.send: the token is not sent to %s without TLS. Use https, or set agent.sinks.send.tokenInClear: true." .) -}}
{{- end -}}
{{- end -}}
{{- if and $send.tokenInClear (not (or $send.tokenSecret.name $send.tokenAudience)) -}}
{{- $all = append $all "agent.sinks.send.tokenInClear needs agent.sinks.send.tokenSecret.name or tokenAudience." -}}
{{- end -}}
{{- if and $send.tokenAudience $send.tokenSecret.name -}}
{{- $all = append $all "agent.sinks.send.tokenSecret and tokenAudience: one token is sent. Remove one of them." -}}
{{- end -}}
{{- if and $send.tokenAudience (not .Values.agent.apiServer) -}}
{{- $all = append $all "agent.sinks.send.tokenAudience needs agent.apiServer: without it the agent has no service account." -}}
{{- end -}}
{{- $names := list -}}
{{- range .Values.agent.sinks.copyTo -}}
{{- if has .name $names -}}
{{- $all = append $all (printf "agent.sinks.copyTo: two are called %q. Give each a name of its own." .name) -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- toJson $all -}}
{{- end }}

{{/* The program refuses most flags twice: the pods would not start. */}}
{{- define "dualplane.checks.flags" -}}
{{- $owner := dict "--state" "agent.state.path" "--disk" "agent.state.disk" "--cgroups" "the chart" "--listen" "agent.address and agent.port"
  "--nvml" "agent.driver.path" "--dcgm-exporter" "agent.dcgmExporter" "--serve-incidents" "agent.serveIncidents"
  "--no-cluster" "agent.apiServer" "--send-method" "agent.sinks.send.method" "--send-token" "agent.sinks.send.tokenSecret"
  "--send-token-in-clear" "agent.sinks.send.tokenInClear" "--send-headers" "agent.sinks.send.headersSecret"
  "--send-ca" "agent.sinks.send.caConfigMap" -}}
{{- $all := list -}}
{{- range .Values.agent.extraArgs -}}
{{- $flag := . | splitList "=" | first -}}
{{- if hasKey $owner $flag -}}
{{- $all = append $all (printf "agent.extraArgs: %s is set by %s. Remove it there." $flag (get $owner $flag)) -}}
{{- end -}}
{{- end -}}
{{- toJson $all -}}
{{- end }}

{{- define "dualplane.checks.access" -}}
{{- $all := list -}}
{{- range $role := list "reader" "kubelet" "apply" "minimal" -}}
{{- $of := get $.Values.rbac $role -}}
{{- if and (not $of.create) $of.subjects -}}
{{- $all = append $all (printf "rbac.%s has subjects and is not created. Set rbac.%s.create: true." $role $role) -}}
{{- end -}}
{{- range $of.subjects -}}
{{- if and (eq .kind "ServiceAccount") (not .namespace) -}}
{{- $all = append $all (printf "rbac.%s: the ServiceAccount %q needs its namespace." $role .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $role := list "apply" "minimal" -}}
{{- $of := get $.Values.rbac $role -}}
{{- if and $of.create $of.subjects (not $of.namespaces) -}}
{{- $all = append $all (printf "rbac.%s is bound in single namespaces only. Name them in rbac.%s.namespaces." $role $role) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.rbac.minimal.create (not .Values.rbac.minimal.namespaces) (not .Values.rbac.minimal.subjects) -}}
{{- $all = append $all "rbac.minimal is a Role of single namespaces. Name them in rbac.minimal.namespaces." -}}
{{- end -}}
{{- if and .Values.podMonitor.create (not .Values.agent.enabled) -}}
{{- $all = append $all "podMonitor.create needs agent.enabled: true: there is nothing else to scrape." -}}
{{- end -}}
{{- toJson $all -}}
{{- end }}

{{- define "dualplane.checks.rules" -}}
{{- $r := .Values.rules -}}
{{- $all := list -}}
{{- if or $r.disable $r.enable -}}
{{- $known := list -}}
{{- range (.Files.Get "rules.yaml" | fromYaml).families -}}
{{- range .alerts -}}{{- $known = append $known .id -}}{{- end -}}
{{- end -}}
{{- range $key := list "disable" "enable" -}}
{{- range get $r $key -}}
{{- if not (has . $known) -}}
{{- $all = append $all (printf "rules.%s: no alert is called %q. docs/alerts.md lists them." $key .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $all -}}
{{- end }}

{{- define "dualplane.checks.policies" -}}
{{- $all := list -}}
{{- with .Values.policies.disable -}}
{{- $known := list -}}
{{- range ($.Files.Get "policies.yaml" | fromYaml).policies -}}{{- $known = append $known .id -}}{{- end -}}
{{- range . -}}
{{- if not (has . $known) -}}
{{- $all = append $all (printf "policies.disable: no rule with a policy is called %q. docs/lint.md lists them." .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $all -}}
{{- end }}

{{- define "dualplane.checks.server" -}}
{{- $s := .Values.server -}}
{{- $all := list -}}
{{- if not (or $s.tokensSecret.name $s.kubernetes.enabled) -}}
{{- $all = append $all "server.enabled needs server.tokensSecret.name, or server.kubernetes.enabled: without tokens everyone could read incidents. `dualplane-server token NAME` makes one." -}}
{{- end -}}
{{- if and (not $s.tlsSecret) (not $s.behindProxy) -}}
{{- $all = append $all "server.enabled needs server.tlsSecret, or server.behindProxy: true where an ingress before it speaks TLS: tokens would cross the network in the clear." -}}
{{- end -}}
{{- if and $s.tlsSecret $s.behindProxy -}}
{{- $all = append $all "server.tlsSecret and server.behindProxy: it speaks TLS itself, or a proxy does. Remove one of them." -}}
{{- end -}}
{{- if and $s.kubernetes.watch.enabled (not $s.kubernetes.enabled) -}}
{{- $all = append $all "server.kubernetes.watch needs server.kubernetes.enabled: the server has no account of its own without." -}}
{{- end -}}
{{- if and $s.kubernetes.watch.namespaces (not $s.kubernetes.watch.enabled) -}}
{{- $all = append $all "server.kubernetes.watch.namespaces are for watching. Set server.kubernetes.watch.enabled: true." -}}
{{- end -}}
{{- if and (gt (int $s.replicas) 1) (not (and $s.databaseSecret.name $s.bundles.url)) -}}
{{- $all = append $all "server.replicas above 1 needs server.databaseSecret.name and server.bundles.url: SQLite and the volume are those of one pod." -}}
{{- end -}}
{{- if and (gt (int $s.replicas) 1) $s.storage.existingClaim -}}
{{- $all = append $all "server.storage.existingClaim is for one pod: with server.replicas above 1 nothing is kept on a volume. Remove it." -}}
{{- end -}}
{{- if and $s.bundles.keysSecret (not $s.bundles.url) -}}
{{- $all = append $all "server.bundles.keysSecret is for a bucket. Set server.bundles.url." -}}
{{- end -}}
{{- $o := $s.oidc -}}
{{- if $o.issuerUrl -}}
{{- if not $s.kubernetes.enabled -}}
{{- $all = append $all "server.oidc needs server.kubernetes.enabled: the issuer says who somebody is, and the cluster what they may." -}}
{{- end -}}
{{- if not $o.clientId -}}
{{- $all = append $all "server.oidc.issuerUrl needs server.oidc.clientId: tokens for another client are not for this server." -}}
{{- end -}}
{{- if and $o.clientSecret.name (not $o.url) -}}
{{- $all = append $all "server.oidc.clientSecret is for signing in on the page. Set server.oidc.url, or remove it." -}}
{{- end -}}
{{- if and $o.sessionKeySecret.name (not $o.url) -}}
{{- $all = append $all "server.oidc.sessionKeySecret is for signing in on the page. Set server.oidc.url, or remove it." -}}
{{- end -}}
{{- if and $o.url (gt (int $s.replicas) 1) (not $o.sessionKeySecret.name) -}}
{{- $all = append $all "server.oidc.sessionKeySecret: who signs in at one of several replicas must be known to all. Name a Secret with the key." -}}
{{- end -}}
{{- else if or $o.clientId $o.clientSecret.name $o.sessionKeySecret.name $o.url $o.caConfigMap.name -}}
{{- $all = append $all "server.oidc says of an issuer and names none. Set server.oidc.issuerUrl." -}}
{{- end -}}
{{- range $s.extraArgs -}}
{{- $flag := . | splitList "=" | first -}}
{{- if hasPrefix "--oidc-" $flag -}}
{{- $all = append $all (printf "server.extraArgs: %s is set by server.oidc. Remove it there." $flag) -}}
{{- end -}}
{{- if has $flag (list "--listen" "--data" "--tokens" "--keep-days" "--tls-cert" "--tls-key" "--behind-proxy" "--database-url" "--bundles" "--bundles-endpoint" "--bundles-region" "--bundles-plain" "--kubernetes" "--cluster" "--audience" "--watch" "--watch-namespace") -}}
{{- $all = append $all (printf "server.extraArgs: %s is set by the chart's own values. Remove it there." $flag) -}}
{{- end -}}
{{- end -}}
{{- toJson $all -}}
{{- end }}
