{{- define "ambit.name" -}}
{{- .Values.nameOverride | default (ternary .Release.Name (printf "%s-ambit" .Release.Name) (contains "ambit" .Release.Name)) | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{/* What tells this release's objects from another one's. */}}
{{- define "ambit.selector" -}}
app.kubernetes.io/name: ambit
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "ambit.labels" -}}
{{ include "ambit.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "ambit.runnerSelector" -}}
{{ include "ambit.selector" . }}
app.kubernetes.io/component: runner
{{- end }}

{{- define "ambit.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* Where the runners' account is: in the sandboxes' namespace if the runner is outside the cluster. */}}
{{- define "ambit.accountNamespace" -}}
{{- ternary .Release.Namespace .Values.sandboxes.namespace .Values.runner.enabled -}}
{{- end }}

{{/* The runners' configuration, from the chart's own values and then `config`. */}}
{{- define "ambit.config" -}}
{{- $sandboxes := .Values.sandboxes -}}
{{- $own := dict
  "namespace" $sandboxes.namespace
  "image" $sandboxes.image
  "pull" $sandboxes.pull
  "hostUsers" $sandboxes.hostUsers
  "deployment" (include "ambit.name" . | trunc 30 | trimSuffix "-")
-}}
{{- range $key := list "pullSecrets" "nodeSelector" "tolerations" "runtimeClass" -}}
{{- with get $sandboxes $key -}}{{- $_ := set $own $key . -}}{{- end -}}
{{- end -}}
{{- $kubernetes := dict "use" "@ambit/sandbox-kubernetes" "config" (merge $own $sandboxes.settings) -}}
{{- $config := dict
  "extends" "defaults"
  "without" (list "@ambit/sandbox-local")
  "plugins" (concat (list $kubernetes "@ambit/store-postgres") .Values.plugins)
  "server" (dict "drainMs" (mul .Values.runner.drainSeconds 1000))
  "interactions" (dict "keyFile" "/etc/ambit/keys/interaction.key")
-}}
{{- /* The first probe may wait for nodes that pull the image, or for room. */ -}}
{{- $base := dict "probes" (dict "timeoutMs" 600000) -}}
{{- mergeOverwrite $base (deepCopy .Values.config) $config | toPrettyJson -}}
{{- end }}
