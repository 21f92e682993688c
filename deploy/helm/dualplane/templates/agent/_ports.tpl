{{/* Parts of the NetworkPolicy. */}}

{{- define "dualplane.agent.cidrs" -}}
{{- if . -}}
to:
{{- range . }}
- ipBlock: {cidr: {{ . | quote }}}
{{- end }}
{{- end }}
{{- end }}

{{/* Ports of a list of URLs: those that they name, or that their schemes mean. */}}
{{- define "dualplane.agent.urlPorts" -}}
{{- $ports := list -}}
{{- range . -}}
{{- $host := regexReplaceAll "^[a-z]+://([^/?@]*@)?([^/?]*).*" . "${2}" -}}
{{- $port := regexFind ":[0-9]+$" $host | trimPrefix ":" -}}
{{- $ports = append $ports (int (default (ternary "443" "80" (hasPrefix "https:" .)) $port)) -}}
{{- end -}}
{{- $ports | uniq | toJson -}}
{{- end }}
