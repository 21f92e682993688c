{{/* What several objects of the server need. */}}

{{- define "dualplane.server.fullname" -}}
{{ include "dualplane.fullname" . }}-server
{{- end }}

{{/* Never changes for a release: a Deployment's selector cannot be changed. */}}
{{- define "dualplane.server.selector" -}}
app.kubernetes.io/name: {{ include "dualplane.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: server
{{- end }}

{{- define "dualplane.server.labels" -}}
{{ include "dualplane.labels" . }}
app.kubernetes.io/component: server
{{- end }}

{{/* Of the volume: the chart's own, or one that is there. */}}
{{- define "dualplane.server.claim" -}}
{{ default (include "dualplane.server.fullname" .) .Values.server.storage.existingClaim }}
{{- end }}

{{/* Not empty: it has an account of its own, for the API server or for the roles of a cloud. */}}
{{- define "dualplane.server.account" -}}
{{- if and .Values.server.enabled (or .Values.server.kubernetes.enabled .Values.server.serviceAccount.annotations) -}}
own
{{- end -}}
{{- end }}
