{{/* What several objects of the agent need. */}}

{{- define "dualplane.agent.fullname" -}}
{{ include "dualplane.fullname" . }}-agent
{{- end }}

{{/* Never changes for a release: a DaemonSet's selector cannot be changed. */}}
{{- define "dualplane.agent.selector" -}}
app.kubernetes.io/name: {{ include "dualplane.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: agent
{{- end }}

{{- define "dualplane.agent.labels" -}}
{{ include "dualplane.labels" . }}
app.kubernetes.io/component: agent
{{- end }}

{{- define "dualplane.agent.serviceAccountName" -}}
{{- default (include "dualplane.agent.fullname" .) .Values.agent.serviceAccount.name -}}
{{- end }}

{{/* Terms of a node affinity; a node that fits one of them is taken. */}}
{{- define "dualplane.agent.nodeTerms" -}}
{{- $labels := .Files.Get "gpu-labels.yaml" | fromYaml -}}
{{- $vendors := list .Values.agent.nodes -}}
{{- if eq .Values.agent.nodes "gpu" -}}
{{- $vendors = $labels | keys | sortAlpha -}}
{{- end -}}
{{- range $vendors }}
{{- range get $labels . }}
- matchExpressions:
  - key: {{ .key }}
    {{- if .values }}
    operator: In
    values: {{ toJson .values }}
    {{- else }}
    operator: Exists
    {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "dualplane.agent.affinity" -}}
{{- $affinity := deepCopy (default dict .Values.agent.affinity) -}}
{{- if ne .Values.agent.nodes "any" -}}
{{- $terms := include "dualplane.agent.nodeTerms" . | fromYamlArray -}}
{{- $_ := set $affinity "nodeAffinity" (dict "requiredDuringSchedulingIgnoredDuringExecution" (dict "nodeSelectorTerms" $terms)) -}}
{{- end -}}
{{- with $affinity }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{- define "dualplane.agent.args" -}}
{{- $a := .Values.agent -}}
- agent
- --state=/var/lib/dualplane
- --cgroups=/host/sys/fs/cgroup
- --listen={{ ternary (printf "[%s]" $a.address) $a.address (contains ":" $a.address) }}:{{ $a.port }}
{{- with $a.state.disk }}
- --disk={{ . }}
{{- end }}
{{- if $a.driver.path }}
- --nvml=/host/driver/{{ $a.driver.library }}
{{- end }}
{{- with $a.dcgmExporter }}
- --dcgm-exporter={{ . }}
{{- end }}
{{- range $a.kubelet.cgroupRoots }}
- --cgroup-root={{ . }}
{{- end }}
{{- if $a.serveIncidents }}
- --serve-incidents
{{- end }}
{{- if not $a.apiServer }}
- --no-cluster
{{- end }}
{{- range $a.sinks.copyTo }}
- --copy-to=/copy/{{ .name }}/{{ .folder }}
{{- end }}
{{- with $a.sinks.send }}
{{- if .urls }}
{{- range .urls }}
- {{ printf "--send-to=%s" . | quote }}
{{- end }}
- --send-method={{ .method }}
{{- if or .tokenSecret.name .tokenAudience }}
- --send-token=/send/token/token
{{- end }}
{{- if .tokenInClear }}
- --send-token-in-clear
{{- end }}
{{- if .headersSecret.name }}
- --send-headers=/send/headers/headers
{{- end }}
{{- if .caConfigMap.name }}
- --send-ca=/send/ca/ca.crt
{{- end }}
{{- end }}
{{- end }}
{{- range $a.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{- define "dualplane.agent.securityContext" -}}
# Files in /proc, /var/log/pods and the state are root's.
runAsUser: 0
# It writes below its state alone.
readOnlyRootFilesystem: true
{{- if .Values.agent.privileged }}
privileged: true
{{- else }}
privileged: false
allowPrivilegeEscalation: false
seccompProfile: {{ default (dict "type" "RuntimeDefault") .Values.agent.seccompProfile | toJson }}
appArmorProfile: {{ default (dict "type" "Unconfined") .Values.agent.appArmorProfile | toJson }}
capabilities:
  drop: [ALL]
  {{- $add := .Values.agent.capabilities }}
  {{- if kindIs "invalid" $add }}
  {{- $add = list "SYS_PTRACE" "DAC_READ_SEARCH" }}
  {{- end }}
  {{- with $add }}
  add: {{ toJson . }}
  {{- end }}
{{- end }}
{{- end }}
