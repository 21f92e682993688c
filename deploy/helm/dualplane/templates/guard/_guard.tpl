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
