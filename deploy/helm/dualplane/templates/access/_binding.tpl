{{/* A role of the whole cluster for the subjects of its values: a list of the context and the role's name. */}}
{{- define "dualplane.clusterBinding" -}}
{{- $ := index . 0 -}}
{{- $role := index . 1 -}}
{{- $name := printf "%s-%s" (include "dualplane.fullname" $) $role -}}
{{- with (get $.Values.rbac $role).subjects }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}
  labels: {{- include "dualplane.labels" $ | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}
subjects: {{- include "dualplane.subjects" . }}
{{- end }}
{{- end }}

{{/* The same in each of its namespaces; the third of the list is the kind of the role. */}}
{{- define "dualplane.bindings" -}}
{{- $ := index . 0 -}}
{{- $role := index . 1 -}}
{{- $kind := index . 2 -}}
{{- $name := printf "%s-%s" (include "dualplane.fullname" $) $role -}}
{{- $of := get $.Values.rbac $role -}}
{{- if $of.subjects }}
{{- range $of.namespaces }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $name }}
  namespace: {{ . }}
  labels: {{- include "dualplane.labels" $ | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ $name }}
subjects: {{- include "dualplane.subjects" $of.subjects }}
{{- end }}
{{- end }}
{{- end }}
