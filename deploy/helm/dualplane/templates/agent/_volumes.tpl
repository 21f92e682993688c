{{/* What the agent sees of the node, and where it may write. The reasons stand in deploy/agent.yaml. */}}

{{- define "dualplane.agent.mounts" -}}
{{- $a := .Values.agent -}}
- {name: cgroups, mountPath: /host/sys/fs/cgroup, readOnly: true}
{{- if $a.privileged }}
- {name: kmsg, mountPath: /dev/kmsg, readOnly: true}
{{- end }}
- {name: pod-logs, mountPath: /var/log/pods, readOnly: true}
- {name: container-links, mountPath: /var/log/containers, readOnly: true}
# The folder, not the socket in it: a kubelet that restarts makes a new one.
- {name: pod-resources, mountPath: /var/lib/kubelet/pod-resources, readOnly: true}
- {name: state, mountPath: /var/lib/dualplane}
{{- if $a.driver.path }}
- {name: driver, mountPath: /host/driver, readOnly: true}
{{- end }}
{{- range $a.sinks.copyTo }}
- {name: {{ printf "copy-%s" .name }}, mountPath: {{ printf "/copy/%s" .name }}}
{{- end }}
{{- with $a.sinks.send }}
{{- if or .tokenSecret.name .tokenAudience }}
- {name: send-token, mountPath: /send/token, readOnly: true}
{{- end }}
{{- if .headersSecret.name }}
- {name: send-headers, mountPath: /send/headers, readOnly: true}
{{- end }}
{{- if .caConfigMap.name }}
- {name: send-ca, mountPath: /send/ca, readOnly: true}
{{- end }}
{{- end }}
{{- with $a.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "dualplane.agent.volumes" -}}
{{- $a := .Values.agent -}}
- {name: cgroups, hostPath: {path: /sys/fs/cgroup, type: Directory}}
{{- if $a.privileged }}
- {name: kmsg, hostPath: {path: /dev/kmsg, type: CharDevice}}
{{- end }}
- {name: pod-logs, hostPath: {path: /var/log/pods, type: DirectoryOrCreate}}
- {name: container-links, hostPath: {path: /var/log/containers, type: DirectoryOrCreate}}
- {name: pod-resources, hostPath: {path: {{ printf "%s/pod-resources" (trimSuffix "/" $a.kubelet.root) | quote }}, type: DirectoryOrCreate}}
- {name: state, hostPath: {path: {{ $a.state.path | quote }}, type: DirectoryOrCreate}}
{{- with $a.driver.path }}
- {name: driver, hostPath: {path: {{ . | quote }}, type: Directory}}
{{- end }}
{{- range $a.sinks.copyTo }}
- {{ mergeOverwrite (dict "name" (printf "copy-%s" .name)) .volume | toJson }}
{{- end }}
{{- with $a.sinks.send }}
{{- with .tokenSecret }}
{{- if .name }}
- {name: send-token, secret: {secretName: {{ .name }}, items: [{key: {{ .key }}, path: token}]}}
{{- end }}
{{- end }}
{{- with .tokenAudience }}
- {name: send-token, projected: {sources: [{serviceAccountToken: {audience: {{ . | quote }}, path: token}}]}}
{{- end }}
{{- with .headersSecret }}
{{- if .name }}
- {name: send-headers, secret: {secretName: {{ .name }}, items: [{key: {{ .key }}, path: headers}]}}
{{- end }}
{{- end }}
{{- with .caConfigMap }}
{{- if .name }}
- {name: send-ca, configMap: {name: {{ .name }}, items: [{key: {{ .key }}, path: ca.crt}]}}
{{- end }}
{{- end }}
{{- end }}
{{- with $a.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
