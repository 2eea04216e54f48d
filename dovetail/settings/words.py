"""The description of each of the worker's settings for the reference (docs/reference/settings.md).

One line for each variable of `Settings`; a test keeps both equal, so that no setting lacks a description. A cloud's
variables are described next to their fields, in its own folder.
"""

from typing import Final

WORDS: Final[dict[str, str]] = {
    "CLUSTER_NAME": "required; the cluster's name in every tag, launch template, instance profile and workflow id",
    "DOVETAIL_CLOUD": "the cloud in which nodes are launched; the settings of another cloud are its own",
    "KUBECONFIG": "the cluster's kubeconfig; without it the pod's service account",
    "DOVETAIL_WORLD": "a simulated world's file, in place of a cluster and its cloud (`dovetail demo`)",
    "DOVETAIL_ROLES": "which queues this worker serves: `plan` decides, `control` acts",
    "METRICS_PORT": "where `/metrics` is served; `0`: nowhere. The chart sets 8080",
    "HEALTH_PROBE_PORT": "where `/healthz` and `/readyz` are served; `0`: nowhere. The chart sets 8081",
    "DOVETAIL_LISTEN_ADDRESS": "the address of all of them; `*`: every address, of IPv4 and IPv6. The chart sets it",
    "DISABLE_CLUSTER_STATE_OBSERVABILITY": "`true`: leave out the gauges of nodes, pods and conditions",
    "LOG_LEVEL": "`debug`, `info`, `warning` or `error`",
    "BATCH_IDLE_DURATION": "pods are placed once no further pending pod has come for this long",
    "BATCH_MAX_DURATION": "how long to wait for further pending pods at most",
    "DOVETAIL_PASS_LIMIT": (
        "how long one pass may place pods; it answers with what it has, and the next begins with the pods not reached. "
        "What places pods for an answer (`plan`, `explain pod`, the page) ends by it too, and says what was not reached"
    ),
    "DOVETAIL_SEARCH_LIMIT": "how long one round, or one answer to a question, may search for nodes to disrupt",
    "PREFERENCE_POLICY": "`Ignore`: preferences of pods do not count",
    "MIN_VALUES_POLICY": "`BestEffort`: minimum values give way where nothing else fits",
    "FEATURE_GATES": (
        "`Name=true,Name=false`; gates that are not named keep their defaults, unknown ones are warned about. "
        "`ReservedCapacity=false`: reservations are neither used nor opted out of. `PodDeletionCostManagement=true`: "
        "ReplicaSets that shrink give up pods on nodes first that disruption would take next (it takes the right of "
        "deletion-costs.yaml)"
    ),
    "LEGACY_NODE_REPAIR": (
        "`true`, with the gate NodeRepair: unhealthy nodes are deleted at once, as until Karpenter 1.14, whatever"
        " budgets and pods say; else they are replaced first, as a disruption"
    ),
    "IGNORE_DRA_REQUESTS": (
        "`false`: pods with resource claims are placed by their devices (docs/guides/devices.md); else they get no node"
    ),
    "SCHEDULER_CONFIG": "the kube-scheduler's default spread constraints, as YAML or JSON in Karpenter's form",
    "DOVETAIL_CLAIMS_PER_POD": (
        "how many NodeClaims are made within an hour for one pod that runs on none of their nodes; `0`: any number"
    ),
    "DOVETAIL_BRAKE_LAUNCHES": (
        "after how many launches within an hour that came to nothing launching stops for an owner, a namespace or a "
        "NodePool; `0`: never"
    ),
    "DOVETAIL_BRAKE_DOLLARS_PER_HOUR": "the same in dollars an hour added within ten minutes; `0`: never",
    "DOVETAIL_DRAIN_OWNER_SHARE": (
        "the share of one owner's pods (a ReplicaSet's, a StatefulSet's) that drains may have on their way at once, "
        "without any PodDisruptionBudget; `0`: no limit"
    ),
    "DOVETAIL_MOVES": (
        "`true`: a Deployment of one replica that says `dovetail.sh/move: restart` is rolled out anew where its pod "
        "must leave, so that another is available first; needs `deploy/kubernetes/moves.yaml`"
    ),
    "DOVETAIL_PROMETHEUS_URL": (
        "the Prometheus, or what speaks its API, that gates of roll-outs and the health of policies ask; without it "
        "they are Unknown, and hold"
    ),
    "DOVETAIL_PROMETHEUS_TOKEN_FILE": "a file with the bearer token for it, read again at each question",
    "DOVETAIL_PROMETHEUS_CA_FILE": "a file with the certificates by which it is known, in place of the system's",
    "DOVETAIL_KEEP_WAY_BACK": (
        "`true` during the first step of an upgrade: workflows begin no change that the previous version does not know"
    ),
    "DOVETAIL_BESIDE_KARPENTER": (
        "`true`: this worker looks, plans and answers questions, and writes nothing: not to the cluster, the cloud or "
        "Temporal, whether a Karpenter runs or not"
    ),
    "DOVETAIL_RECORD": (
        "where the record of launches, disruptions and terminations is kept beyond Temporal's retention: a folder that "
        "all workers share, or `s3://bucket/prefix`; without it Temporal's record is all that there is"
    ),
    "DOVETAIL_FLIGHTS": (
        "where the inputs of decisions are kept, for `dovetail replay` and `explain … --at`: a folder that all workers "
        "share, or `s3://bucket/prefix`; without it nowhere"
    ),
    "DOVETAIL_FLIGHTS_MEGABYTES": "how large they may grow together; the oldest are deleted",
    "SYSTEM_NAMESPACE": "the workers' own namespace, where the ConfigMap of shortages of capacity is",
    "LEADER_ELECTION_NAMESPACE": (
        "the namespace of Karpenter's Lease where it is neither `karpenter`, `kube-system` nor the workers' own: no "
        "step is taken while the Lease `karpenter-leader-election` is held in one of these, and in no other does it "
        "count. Who may write Leases there stops every worker"
    ),
    "CLUSTER_ENDPOINT": "where new nodes find the API server, an absolute URL; without it the cloud is asked",
    "CLUSTER_CA_BUNDLE": (
        "the certificate by which new nodes know the API server, base64; without it the worker's own. Part of a "
        "NodeClass's hash: a change drifts every node"
    ),
    "TEMPORAL_WORKER_BUILD_ID": "the worker's version for Temporal's worker deployments: the image's digest or tag",
    "TEMPORAL_DEPLOYMENT_NAME": "the deployment that this version belongs to: one name per cluster, always the same",
    "DOVETAIL_TEMPORAL_HEARTBEATS": (
        "`cloud`: waits send so few heartbeats that an idle cluster costs less than one action a minute"
    ),
    "DOVETAIL_TEMPORAL_API_KEY_FILE": (
        "a file with the API key that is read again while the worker runs; comes before `TEMPORAL_API_KEY`"
    ),
    "DOVETAIL_PAYLOAD_CODEC": "`module:factory` that encodes what Temporal keeps; workers and commands need the same",
    "DOVETAIL_CODEC_KEYS": "the folder of keys that the factory is given",
    "DOVETAIL_TEMPORAL_UI": "the address of Temporal's Web UI as people open it, to which the web page links workflows",
    "POD_NAME": "the worker's name in Temporal's lists where its host name is not its own (`hostNetwork`)",
    "DOVETAIL_VERSIONING": (
        "for a worker with a version: `pinned` workflows end on the version that they began on, "
        "`auto-upgrade` ones move with their next task"
    ),
    "DOVETAIL_API": "`false`: no questions are answered under `/api/v1`",
    "DOVETAIL_API_PORT": "where `/api/v1` is served; `0`: on the port of the metrics. The chart sets 8082",
    "DOVETAIL_API_FROM": (
        "who may ask there besides the API server's proxy and this machine: networks such as `10.0.0.0/8`, and names "
        "of hosts by which a browser may call a worker; `0.0.0.0/0,::/0`: everybody"
    ),
    "DOVETAIL_CONTEXT": "for commands: the context of the kubeconfig; without it the current one",
    "DOVETAIL_SERVICE": "for commands: the workers' Service, as `NAMESPACE/NAME:PORT`",
    "LOG_FORMAT": "`json` or `text`; without it text where standard output is a terminal, else JSON",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "a collector, to which traces, metrics and the log are sent; needs the extra `otlp`",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "the same for traces alone: the whole address",
    "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "the same for lines of the log alone: the whole address",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "the same for metrics alone: the whole address",
    "OTEL_EXPORTER_OTLP_PROTOCOL": "`http/protobuf`, the only one that there is",
    "OTEL_SDK_DISABLED": "`true`: nothing is sent to a collector",
    "OTEL_TRACES_EXPORTER": "`none`: no traces are sent although a collector is named",
    "OTEL_LOGS_EXPORTER": "`none`: no lines of the log are sent although a collector is named",
    "OTEL_METRICS_EXPORTER": "`none`: no metrics are sent although a collector is named",
    "OTEL_TRACES_SAMPLER": "which traces are kept: `…always_on`, `…always_off`, or by `…traceidratio` a share",
    "OTEL_TRACES_SAMPLER_ARG": "that share",
    "PLACEMENT_POLICY": "`Cost`: cheaper nodes are looked for after each pass ([cost](../cost.md))",
    "DOVETAIL_COST_SECONDS": "how long to look for them, in processor time, for each thousand pods begun",
    "DOVETAIL_COST_WORTH": "for it: percent of a NodePool's price to save for each percent of the pool that is moved",
    "DOVETAIL_COST_KEEP_PLACES": "pods are nominated for the nodes that the policy `Cost` makes for them",
    "DOVETAIL_NODE_COST": "dollars an hour that a node costs beside its instance, for that policy",
}
