{{/* The name of the chart. */}}
{{- define "dovetail.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{/* The name of everything in the release; room is left for suffixes. */}}
{{- define "dovetail.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains (include "dovetail.name" .) .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "dovetail.name" .) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "dovetail.selectorLabels" -}}
app.kubernetes.io/name: {{ include "dovetail.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* The labels by which the workers are told from other pods of the release. */}}
{{- define "dovetail.workerLabels" -}}
{{ include "dovetail.selectorLabels" . }}
app.kubernetes.io/component: worker
{{- end -}}

{{- define "dovetail.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "dovetail.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.additionalLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* What every object of a release has: name, namespace, labels, annotations. Called with (root, name, annotations). */}}
{{- define "dovetail.metadata" -}}
{{- $root := index . 0 -}}
name: {{ index . 1 }}
{{- with index . 2 }}
namespace: {{ . }}
{{- end }}
labels:
  {{- include "dovetail.labels" $root | nindent 2 }}
{{- with merge (deepCopy (index . 3)) $root.Values.additionalAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "dovetail.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "dovetail.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name: needed where serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "dovetail.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{/* Karpenter's own default is no name for us: while both charts are there it is taken. */}}
{{- define "dovetail.budgetName" -}}
{{- $given := .Values.podDisruptionBudget.name -}}
{{- if or (not $given) (eq $given "karpenter") -}}
{{- include "dovetail.fullname" . -}}
{{- else -}}
{{- $given -}}
{{- end -}}
{{- end -}}

{{/* Karpenter's file leaves it empty, which takes the default away. */}}
{{- define "dovetail.grace" -}}
{{- default 60 .Values.terminationGracePeriodSeconds | int -}}
{{- end -}}

{{- define "dovetail.temporalAddress" -}}
{{- if eq .Values.temporal.mode "dev" -}}
{{ include "dovetail.fullname" . }}-temporal.{{ .Release.Namespace }}:7233
{{- else -}}
{{- .Values.temporal.address -}}
{{- end -}}
{{- end -}}

{{/* Gates of Karpenter 1.15 that stand in its chart and that there are none of here: closed, they are as good as unsaid. */}}
{{- define "dovetail.karpentersGates" -}}
draNVIDIAGPU draEFA
{{- end -}}

{{/* FEATURE_GATES: the gates with a capital letter, or DRA in capitals, as Karpenter spells them there. */}}
{{- define "dovetail.featureGates" -}}
{{- $gates := list -}}
{{- $unsaid := splitList " " (include "dovetail.karpentersGates" .) -}}
{{- range $name, $open := . -}}
{{- if not (or (kindIs "invalid" $open) (and (not $open) (has $name $unsaid))) -}}
{{- $capitals := ternary 3 1 (hasPrefix "dra" $name) -}}
{{- $gates = append $gates (printf "%s%s=%t" (upper (substr 0 $capitals $name)) (substr $capitals -1 $name) $open) -}}
{{- end -}}
{{- end -}}
{{- join "," $gates -}}
{{- end -}}

{{/* The variables of the connection to Temporal. temporal-worker-controller sets the first ones itself. */}}
{{- define "dovetail.temporalEnv" -}}
{{- $temporal := .Values.temporal -}}
{{- if ne .Values.versioning.mode "controller" }}
- {name: TEMPORAL_ADDRESS, value: {{ include "dovetail.temporalAddress" . | quote }}}
- {name: TEMPORAL_NAMESPACE, value: {{ $temporal.namespace | quote }}}
{{- if $temporal.tls.enabled }}
- {name: TEMPORAL_TLS, value: "true"}
{{- end }}
{{- with $temporal.tls.clientSecret }}
- {name: TEMPORAL_TLS_CLIENT_CERT_PATH, value: /etc/dovetail/client/tls.crt}
- {name: TEMPORAL_TLS_CLIENT_KEY_PATH, value: /etc/dovetail/client/tls.key}
{{- end }}
{{- if $temporal.apiKeySecret.name }}
- {name: DOVETAIL_TEMPORAL_API_KEY_FILE, value: /etc/dovetail/api-key/key}
{{- end }}
{{- end }}
{{- with $temporal.tls.serverName }}
- {name: TEMPORAL_TLS_SERVER_NAME, value: {{ . | quote }}}
{{- end }}
{{- if $temporal.tls.caSecret.name }}
- {name: TEMPORAL_TLS_SERVER_CA_CERT_PATH, value: /etc/dovetail/authority/ca.crt}
{{- end }}
- {name: DOVETAIL_TEMPORAL_UI, value: {{ $temporal.ui | quote }}}
- {name: DOVETAIL_TEMPORAL_HEARTBEATS, value: {{ $temporal.heartbeats | quote }}}
{{- with $temporal.codec.factory }}
- {name: DOVETAIL_PAYLOAD_CODEC, value: {{ . | quote }}}
{{- end }}
{{- if $temporal.codec.keysSecret }}
- {name: DOVETAIL_CODEC_KEYS, value: /etc/dovetail/codec}
{{- end }}
{{- end -}}

{{/* The settings. A number is written by toJson: 1000000 of a file of values would come out as 1e+06, which is no whole number. */}}
{{- define "dovetail.settingsEnv" -}}
{{- $s := .Values.settings -}}
{{- $d := .Values.dovetail -}}
- {name: DOVETAIL_CLOUD, value: {{ .Values.cloud | quote }}}
- {name: CLUSTER_NAME, value: {{ $s.clusterName | quote }}}
- {name: CLUSTER_ENDPOINT, value: {{ $s.clusterEndpoint | quote }}}
- {name: CLUSTER_CA_BUNDLE, value: {{ $s.clusterCABundle | quote }}}
- {name: EKS_CONTROL_PLANE, value: {{ $s.eksControlPlane | quote }}}
- {name: INTERRUPTION_QUEUE, value: {{ $s.interruptionQueue | quote }}}
- {name: ISOLATED_VPC, value: {{ $s.isolatedVPC | quote }}}
- {name: VM_MEMORY_OVERHEAD_PERCENT, value: {{ $s.vmMemoryOverheadPercent | quote }}}
- {name: RESERVED_ENIS, value: {{ $s.reservedENIs | toJson | trimAll "\"" | quote }}}
- {name: DISABLE_DRY_RUN, value: {{ $s.disableDryRun | quote }}}
- {name: ENABLE_ZONAL_SHIFT, value: {{ $s.enableZonalShift | quote }}}
- {name: AMI_REFRESH_INTERVAL, value: {{ $s.amiRefreshInterval | quote }}}
- {name: SUBNET_REFRESH_INTERVAL, value: {{ $s.subnetRefreshInterval | quote }}}
- {name: SECURITY_GROUP_REFRESH_INTERVAL, value: {{ $s.securityGroupRefreshInterval | quote }}}
- {name: AWS_FEATURE_GATES, value: {{ include "dovetail.featureGates" $s.awsFeatureGates | quote }}}
- {name: BATCH_MAX_DURATION, value: {{ $s.batchMaxDuration | quote }}}
- {name: BATCH_IDLE_DURATION, value: {{ $s.batchIdleDuration | quote }}}
- {name: PREFERENCE_POLICY, value: {{ $s.preferencePolicy | quote }}}
- {name: MIN_VALUES_POLICY, value: {{ $s.minValuesPolicy | quote }}}
- {name: IGNORE_DRA_REQUESTS, value: {{ not (or $s.enableDRA (eq (toString $s.ignoreDRARequests) "false")) | quote }}}
- {name: LEGACY_NODE_REPAIR, value: {{ default false $s.legacyNodeRepair | quote }}}
- {name: DISABLE_CLUSTER_STATE_OBSERVABILITY, value: {{ $s.disableClusterStateObservability | quote }}}
- {name: FEATURE_GATES, value: {{ include "dovetail.featureGates" $s.featureGates | quote }}}
- {name: LOG_LEVEL, value: {{ ternary "warning" .Values.logLevel (eq .Values.logLevel "warn") | quote }}}
- {name: METRICS_PORT, value: {{ .Values.controller.metrics.port | quote }}}
- {name: HEALTH_PROBE_PORT, value: {{ .Values.controller.healthProbe.port | quote }}}
- {name: DOVETAIL_LISTEN_ADDRESS, value: "*"}
- {name: DOVETAIL_PASS_LIMIT, value: {{ $d.passLimit | quote }}}
- {name: DOVETAIL_SEARCH_LIMIT, value: {{ $d.searchLimit | quote }}}
- {name: DOVETAIL_CLAIMS_PER_POD, value: {{ $d.claimsPerPod | toJson | quote }}}
- {name: DOVETAIL_BRAKE_LAUNCHES, value: {{ $d.brakeLaunches | toJson | quote }}}
- {name: DOVETAIL_BRAKE_DOLLARS_PER_HOUR, value: {{ $d.brakeDollarsPerHour | toJson | quote }}}
- {name: DOVETAIL_DRAIN_OWNER_SHARE, value: {{ $d.drainOwnerShare | quote }}}
- {name: DOVETAIL_MOVES, value: {{ .Values.moves.enabled | quote }}}
{{- with .Values.prometheus }}
- {name: DOVETAIL_PROMETHEUS_URL, value: {{ .url | quote }}}
{{- if .tokenSecret.name }}
- {name: DOVETAIL_PROMETHEUS_TOKEN_FILE, value: /etc/dovetail/prometheus-token/token}
{{- end }}
{{- if .caSecret.name }}
- {name: DOVETAIL_PROMETHEUS_CA_FILE, value: /etc/dovetail/prometheus-authority/ca.crt}
{{- end }}
{{- end }}
- {name: DOVETAIL_KEEP_WAY_BACK, value: {{ $d.keepWayBack | quote }}}
- {name: PLACEMENT_POLICY, value: {{ $d.placementPolicy | quote }}}
- {name: DOVETAIL_COST_SECONDS, value: {{ $d.costSeconds | quote }}}
- {name: DOVETAIL_COST_WORTH, value: {{ $d.costWorth | quote }}}
- {name: DOVETAIL_NODE_COST, value: {{ $d.nodeCost | toJson | quote }}}
- {name: DOVETAIL_COST_KEEP_PLACES, value: {{ $d.costKeepPlaces | quote }}}
- {name: DOVETAIL_RECORD, value: {{ $d.record | quote }}}
- {name: DOVETAIL_FLIGHTS, value: {{ $d.flights | quote }}}
- {name: DOVETAIL_FLIGHTS_MEGABYTES, value: {{ $d.flightsMegabytes | toJson | quote }}}
- {name: DOVETAIL_API, value: {{ $d.api | quote }}}
- {name: DOVETAIL_API_PORT, value: {{ $d.apiPort | quote }}}
- {name: DOVETAIL_API_FROM, value: {{ join "," (ternary (list "0.0.0.0/0" "::/0") $d.apiFrom (and (ne .Values.cloud "aws") (empty $d.apiFrom))) | quote }}}
- {name: DOVETAIL_BESIDE_KARPENTER, value: {{ $d.besideKarpenter | quote }}}
- {name: DOVETAIL_VERSIONING, value: {{ .Values.versioning.behavior | quote }}}
{{- with .Values.otlp.endpoint }}
- {name: OTEL_EXPORTER_OTLP_ENDPOINT, value: {{ . | quote }}}
{{- end }}
{{- with .Values.otlp.headersSecret }}
{{- if .name }}
- {name: OTEL_EXPORTER_OTLP_HEADERS, valueFrom: {secretKeyRef: {name: {{ .name }}, key: {{ .key }}}}}
{{- end }}
{{- end }}
{{- end -}}

{{/* All variables of a worker; one of controller.env takes the place of ours. */}}
{{- define "dovetail.env" -}}
{{- $given := dict -}}
{{- range .Values.controller.env -}}
{{- $_ := set $given .name true -}}
{{- end -}}
{{- $own := concat (include "dovetail.settingsEnv" . | fromYamlArray) (include "dovetail.temporalEnv" . | fromYamlArray) -}}
{{- $pod := dict "fieldRef" (dict "apiVersion" "v1" "fieldPath" "metadata.name") -}}
{{- $namespace := dict "fieldRef" (dict "apiVersion" "v1" "fieldPath" "metadata.namespace") -}}
{{- $own = append $own (dict "name" "POD_NAME" "valueFrom" $pod) -}}
{{- $own = append $own (dict "name" "SYSTEM_NAMESPACE" "valueFrom" $namespace) -}}
{{- $all := list -}}
{{- range $own -}}
{{- if not (hasKey $given .name) -}}
{{- $all = append $all . -}}
{{- end -}}
{{- end -}}
{{- toYaml (concat $all .Values.controller.env) -}}
{{- end -}}

{{/* What Secrets become files, each in a folder of its own, so that a renewal reaches the worker. */}}
{{- define "dovetail.secretVolumes" -}}
{{- $temporal := .Values.temporal -}}
{{- if and $temporal.tls.clientSecret (ne .Values.versioning.mode "controller") }}
- name: temporal-client
  secret: {secretName: {{ $temporal.tls.clientSecret }}}
{{- end }}
{{- with $temporal.tls.caSecret }}
{{- if .name }}
- name: temporal-authority
  secret: {secretName: {{ .name }}, items: [{key: {{ .key }}, path: ca.crt}]}
{{- end }}
{{- end }}
{{- if ne .Values.versioning.mode "controller" }}
{{- with $temporal.apiKeySecret }}
{{- if .name }}
- name: temporal-api-key
  secret: {secretName: {{ .name }}, items: [{key: {{ .key }}, path: key}]}
{{- end }}
{{- end }}
{{- end }}
{{- with $temporal.codec.keysSecret }}
- name: codec-keys
  secret: {secretName: {{ . }}}
{{- end }}
{{- end -}}

{{- define "dovetail.secretMounts" -}}
{{- $folders := dict "temporal-client" "client" "temporal-authority" "authority" "temporal-api-key" "api-key" "codec-keys" "codec" -}}
{{- range include "dovetail.secretVolumes" . | fromYamlArray }}
- {name: {{ .name }}, mountPath: /etc/dovetail/{{ get $folders .name }}, readOnly: true}
{{- end }}
{{- end -}}

{{/* Those by which a worker asks Prometheus, and nothing else does. */}}
{{- define "dovetail.prometheusVolumes" -}}
{{- with .Values.prometheus.tokenSecret }}
{{- if .name }}
- name: prometheus-token
  secret: {secretName: {{ .name }}, items: [{key: {{ .key }}, path: token}]}
{{- end }}
{{- end }}
{{- with .Values.prometheus.caSecret }}
{{- if .name }}
- name: prometheus-authority
  secret: {secretName: {{ .name }}, items: [{key: {{ .key }}, path: ca.crt}]}
{{- end }}
{{- end }}
{{- end -}}

{{- define "dovetail.prometheusMounts" -}}
{{- range include "dovetail.prometheusVolumes" . | fromYamlArray }}
- {name: {{ .name }}, mountPath: /etc/dovetail/{{ .name }}, readOnly: true}
{{- end }}
{{- end -}}

{{/* What a container of ours may do: nothing but run. */}}
{{- define "dovetail.containerSecurity" -}}
runAsUser: 65532
runAsGroup: 65532
runAsNonRoot: true
readOnlyRootFilesystem: true
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* Affinity with the pods' own labels where a term of pods has no selector. */}}
{{- define "dovetail.affinity" -}}
{{- $selector := dict "matchLabels" (include "dovetail.workerLabels" . | fromYaml) -}}
{{- $affinity := deepCopy .Values.affinity -}}
{{- range $kind := list "podAffinity" "podAntiAffinity" -}}
{{- $pods := default dict (get $affinity $kind) -}}
{{- range default list (get $pods "requiredDuringSchedulingIgnoredDuringExecution") -}}
{{- if not (hasKey . "labelSelector") -}}
{{- $_ := set . "labelSelector" $selector -}}
{{- end -}}
{{- end -}}
{{- range default list (get $pods "preferredDuringSchedulingIgnoredDuringExecution") -}}
{{- if not (hasKey .podAffinityTerm "labelSelector") -}}
{{- $_ := set .podAffinityTerm "labelSelector" $selector -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $affinity -}}
{{- end -}}

{{- define "dovetail.spread" -}}
{{- $selector := dict "matchLabels" (include "dovetail.workerLabels" . | fromYaml) -}}
{{- $all := list -}}
{{- range .Values.topologySpreadConstraints -}}
{{- $all = append $all (merge (deepCopy .) (dict "labelSelector" $selector)) -}}
{{- end -}}
{{- toYaml $all -}}
{{- end -}}

{{/* Of a file of values made for Karpenter: what is set and has no effect here, and gates that nobody knows. */}}
{{- define "dovetail.withoutEffect" -}}
{{- $found := list -}}
{{- if .Values.controller.image }}
{{- $found = append $found "controller.image: Karpenter's image; ours is `image`" -}}
{{- end -}}
{{- range $key := list "webhook" "logConfig" "logOutputPaths" "logErrorOutputPaths" -}}
{{- if get $.Values $key }}
{{- $found = append $found (printf "%s: there is none of it here" $key) -}}
{{- end -}}
{{- end -}}
{{- range $key := list "assumeRoleARN" "assumeRoleDuration" -}}
{{- if get $.Values.settings $key -}}
{{- $found = append $found (printf "settings.%s: there is none of it here" $key) -}}
{{- end -}}
{{- end -}}
{{- if eq .Values.podDisruptionBudget.name "karpenter" -}}
{{- $found = append $found (printf "podDisruptionBudget.name: Karpenter's own; ours is %s" (include "dovetail.budgetName" .)) -}}
{{- end -}}
{{- $known := list "nodeRepair" "nodeOverlay" "reservedCapacity" "spotToSpotConsolidation" "staticCapacity" "capacityBuffer" "podDeletionCostManagement" "terminateFirstDrift" "terminateFirstRepair" -}}
{{- $unsaid := splitList " " (include "dovetail.karpentersGates" .) -}}
{{- range $name, $open := .Values.settings.featureGates -}}
{{- if not (or (has $name $known) (and (not $open) (has $name $unsaid))) -}}
{{- $found = append $found (printf "settings.featureGates.%s: %s" $name (ternary "it does nothing here" "no gate of that name" (has $name $unsaid))) -}}
{{- end -}}
{{- end -}}
{{- range $name, $open := .Values.settings.awsFeatureGates -}}
{{- if not (or (has $name (list "nodeClassCEL" "rebootForRepair")) (and (not $open) (has $name $unsaid))) -}}
{{- $found = append $found (printf "settings.awsFeatureGates.%s: %s" $name (ternary "it does nothing here" "no gate of that name" (has $name $unsaid))) -}}
{{- end -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{/* What cannot be said in the schema. `lookup` finds a cluster only where one is about to be changed. */}}
{{- define "dovetail.checks" -}}
{{- if and (not .Values.settings.clusterName) (lookup "v1" "Namespace" "" "kube-system") -}}
{{- fail "settings.clusterName: not set; it is the name by which subnets and security groups are tagged" -}}
{{- end -}}
{{- if and (eq .Values.temporal.mode "external") (not .Values.temporal.address) -}}
{{- fail "temporal.address: not set; the server's host:port, or temporal.mode=dev for a trial" -}}
{{- end -}}
{{- if and (eq .Values.temporal.mode "dev") (or .Values.temporal.tls.enabled .Values.temporal.tls.clientSecret .Values.temporal.apiKeySecret.name) -}}
{{- fail "temporal.tls and temporal.apiKeySecret: the server of temporal.mode=dev has neither" -}}
{{- end -}}
{{- if and .Values.temporal.codec.factory (not .Values.temporal.codec.keysSecret) (hasPrefix "dovetail.codecs.aes_gcm" .Values.temporal.codec.factory) -}}
{{- fail "temporal.codec.keysSecret: not set; dovetail.codecs.aes_gcm needs its keys" -}}
{{- end -}}
{{- if and .Values.otlp.headersSecret.name (not .Values.otlp.endpoint) -}}
{{- fail "otlp.endpoint: not set; otlp.headersSecret goes with requests to a collector" -}}
{{- end -}}
{{- range $key := list "record" "flights" -}}
{{- $place := get $.Values.dovetail $key -}}
{{- if hasPrefix "/" $place -}}
{{- $mounted := false -}}
{{- range $.Values.controller.extraVolumeMounts -}}
{{- if or (eq $place .mountPath) (hasPrefix (printf "%s/" (trimSuffix "/" .mountPath)) $place) -}}
{{- $mounted = true -}}
{{- end -}}
{{- end -}}
{{- if not $mounted -}}
{{- fail (printf "dovetail.%s: %s is on no volume: mount one that all workers share with extraVolumes and controller.extraVolumeMounts, or name a bucket" $key $place) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if eq (int .Values.controller.metrics.port) (int .Values.controller.healthProbe.port) -}}
{{- fail "controller.healthProbe.port: the same as controller.metrics.port; each needs a port of its own" -}}
{{- end -}}
{{- if has (int .Values.dovetail.apiPort) (list (int .Values.controller.metrics.port) (int .Values.controller.healthProbe.port)) -}}
{{- fail "dovetail.apiPort: the same as controller.metrics.port or controller.healthProbe.port; each needs a port of its own" -}}
{{- end -}}
{{- if not (semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version) -}}
{{- $places := and (eq .Values.dovetail.placementPolicy "Cost") .Values.dovetail.costKeepPlaces -}}
{{- $costs := .Values.settings.featureGates.podDeletionCostManagement -}}
{{- range $key, $asked := dict "moves.enabled" .Values.moves.enabled "dovetail.costKeepPlaces" $places "settings.featureGates.podDeletionCostManagement" $costs -}}
{{- if $asked -}}
{{- fail (printf "%s: set it to false; the ValidatingAdmissionPolicy that keeps the worker to its right needs Kubernetes 1.30, and this is %s" $key $.Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if lt (include "dovetail.grace" . | int) 40 -}}
{{- fail (printf "terminationGracePeriodSeconds: %s is less than the 40 that a worker needs to end while Temporal is away" (include "dovetail.grace" .)) -}}
{{- end -}}
{{- end -}}
