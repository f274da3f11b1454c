{{- define "espha.labels" -}}
{{ include "espha.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "espha.selector" -}}
app.kubernetes.io/name: espha-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "espha.name" -}}
{{ .Values.fullnameOverride | default (printf "%s-operator" (.Values.nameOverride | default .Release.Name)) }}
{{- end }}

{{- /* Objects without a namespace need another name in each. */ -}}
{{- define "espha.clusterwide" -}}
{{ .Release.Namespace }}-{{ include "espha.name" . }}
{{- end }}

{{- define "espha.account" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "espha.name" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end }}
{{- end }}

{{- define "espha.webhook" -}}
{{ include "espha.name" . }}-webhook
{{- end }}

{{- /* An image's name with the registry: (list $ NAME) */ -}}
{{- define "espha.image" -}}
{{- $values := (index . 0).Values -}}
{{- $registry := $values.imageRegistry | default (dig "imageRegistry" "" ($values.global | default dict)) -}}
{{- if $registry }}{{ trimSuffix "/" $registry }}/{{ end }}{{ index . 1 }}
{{- end }}

{{- define "espha.pullSecrets" -}}
{{- $names := list -}}
{{- range .Values.imagePullSecrets }}{{ $names = append $names .name }}{{ end -}}
{{ $names | toJson }}
{{- end }}
