{{- define "espha.labels" -}}
app.kubernetes.io/name: espha-operator
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "espha.selector" -}}
app.kubernetes.io/name: espha-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "espha.name" -}}
{{ .Release.Name }}-operator
{{- end }}

{{- define "espha.account" -}}
{{ .Values.serviceAccount.name | default (include "espha.name" .) }}
{{- end }}
