{{/* Names and labels that every object shares. */}}

{{- define "dualplane.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{/* A release that is called after the chart does not repeat it: `helm install dualplane` makes dualplane-agent. */}}
{{- define "dualplane.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "dualplane.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "dualplane.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "dualplane.labels" -}}
app.kubernetes.io/name: {{ include "dualplane.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "dualplane.image" -}}
{{- $of := .Values.image -}}
{{- if $of.digest -}}
{{ $of.repository }}@{{ $of.digest }}
{{- else -}}
{{ $of.repository }}:{{ default .Chart.AppVersion $of.tag }}
{{- end -}}
{{- end }}

{{/* Subjects of a binding: users and groups belong to a group of the API, accounts do not. */}}
{{- define "dualplane.subjects" -}}
{{- range . }}
- kind: {{ .kind }}
  name: {{ .name | quote }}
  {{- if eq .kind "ServiceAccount" }}
  namespace: {{ .namespace }}
  {{- else }}
  apiGroup: rbac.authorization.k8s.io
  {{- end }}
{{- end }}
{{- end }}
