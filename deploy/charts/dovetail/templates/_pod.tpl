{{/* The pods of the workers, for a Deployment and for a WorkerDeployment. */}}
{{- define "dovetail.podTemplate" -}}
metadata:
  labels:
    {{- include "dovetail.workerLabels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  serviceAccountName: {{ include "dovetail.serviceAccountName" . }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  terminationGracePeriodSeconds: {{ include "dovetail.grace" . }}
  schedulerName: {{ .Values.schedulerName }}
  dnsPolicy: {{ .Values.dnsPolicy }}
  {{- with .Values.dnsConfig }}
  dnsConfig:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .Values.hostNetwork }}
  hostNetwork: true
  {{- end }}
  {{- with .Values.podSecurityContext }}
  securityContext:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.initContainers }}
  initContainers:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: {{ .Values.controller.containerName }}
      image: {{ include "dovetail.image" . }}
      imagePullPolicy: {{ .Values.imagePullPolicy }}
      args: [worker]
      securityContext:
        {{- $security := include "dovetail.containerSecurity" . | fromYaml }}
        {{- range $name, $profile := .Values.controller.securityContext }}
        {{- if $profile }}
        {{- $_ := set $security $name $profile }}
        {{- end }}
        {{- end }}
        {{- toYaml $security | nindent 8 }}
      env:
        {{- include "dovetail.env" . | nindent 8 }}
      {{- with .Values.controller.envFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - {name: http-metrics, containerPort: {{ .Values.controller.metrics.port }}, protocol: TCP}
        {{- if .Values.dovetail.api }}
        - {name: http-api, containerPort: {{ .Values.dovetail.apiPort }}, protocol: TCP}
        {{- end }}
        - {name: http, containerPort: {{ .Values.controller.healthProbe.port }}, protocol: TCP}
      # Alive is asked of the process alone. Ready needs Temporal too, and no restart brings that back.
      livenessProbe:
        initialDelaySeconds: 30
        timeoutSeconds: 30
        httpGet: {path: /healthz, port: http}
      readinessProbe:
        initialDelaySeconds: 5
        timeoutSeconds: 30
        httpGet: {path: /readyz, port: http}
      {{- with .Values.controller.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      volumeMounts:
        - {name: tmp, mountPath: /tmp}
        {{- include "dovetail.secretMounts" . | nindent 8 }}
        {{- include "dovetail.prometheusMounts" . | nindent 8 }}
        {{- with .Values.controller.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    {{- range .Values.controller.sidecarContainer }}
    {{- $mounts := concat (default list .volumeMounts) $.Values.controller.extraVolumeMounts $.Values.controller.sidecarVolumeMounts }}
    -
      {{- toYaml (ternary (merge (dict "volumeMounts" $mounts) .) . (gt (len $mounts) 0)) | nindent 6 }}
    {{- end }}
  volumes:
    - name: tmp
      emptyDir: {sizeLimit: 64Mi}
    {{- include "dovetail.secretVolumes" . | nindent 4 }}
    {{- include "dovetail.prometheusVolumes" . | nindent 4 }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .Values.affinity }}
  affinity:
    {{- include "dovetail.affinity" . | nindent 4 }}
  {{- end }}
  {{- if .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- include "dovetail.spread" . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
