{{/* What several objects of the guard need. */}}

{{- define "dualplane.guard.fullname" -}}
{{ include "dualplane.fullname" . }}-guard
{{- end }}

{{/* Never changes for a release: a Deployment's selector cannot be changed. */}}
{{- define "dualplane.guard.selector" -}}
app.kubernetes.io/name: {{ include "dualplane.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: guard
{{- end }}

{{- define "dualplane.guard.labels" -}}
{{ include "dualplane.labels" . }}
app.kubernetes.io/component: guard
{{- end }}

{{/* guard.toml: what the operator wrote, and a [[service]] for each Service. */}}
{{- define "dualplane.guard.config" -}}
{{- .Values.guard.config }}
{{- range .Values.guard.services }}
[[service]]
name = {{ printf "%s/%s" (default $.Release.Namespace .namespace) .name | quote }}
{{- range $key, $value := omit . "name" "namespace" }}
{{ $key }} = {{ if kindIs "string" $value }}{{ $value | quote }}{{ else if kindIs "bool" $value }}{{ $value }}{{ else }}{{ int64 $value }}{{ end }}
{{- end }}
{{ end }}
{{- end }}
