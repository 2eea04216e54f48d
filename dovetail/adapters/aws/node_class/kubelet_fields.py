"""The fields of a kubelet's configuration, and what each may hold (AWS-23)."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from dovetail.model.values.durations import DurationError, parse_nanoseconds


class _Kind(NamedTuple):
    """What a field may hold: the kubelet reads its configuration strictly."""

    words: str
    holds: Callable[[Any], bool]


def _is_whole(value: Any, bits: int = 32) -> bool:
    return type(value) is int and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)


def _is_duration(value: Any) -> bool:
    try:
        return isinstance(value, str) and parse_nanoseconds(value) is not None
    except DurationError:
        return False


def _list_of(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(holds(each) for each in value)


def _map_to(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(holds(each) for each in value.values())


def _is(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind)


_SWITCH: Final = _Kind("true or false", _is(bool))
_TEXT: Final = _Kind("a text", _is(str))
_DURATION: Final = _Kind("a duration such as 30s", _is_duration)
_INT32: Final = _Kind("a whole number", _is_whole)
_INT64: Final = _Kind("a whole number", lambda value: _is_whole(value, 64))
_NUMBER: Final = _Kind("a number", lambda value: type(value) in (int, float))
_TEXTS: Final = _Kind("a list of texts", _list_of(_is(str)))
_NUMBERS: Final = _Kind("a list of whole numbers", _list_of(_is_whole))
_TEXTS_BY_NAME: Final = _Kind("an object of texts", _map_to(_is(str)))
_SWITCHES: Final = _Kind("an object of true and false", _map_to(_is(bool)))
_OBJECT: Final = _Kind("an object", _is(dict))
_LIST: Final = _Kind("a list", _is(list))
# KubeletConfiguration of kubelet.config.k8s.io/v1beta1, Kubernetes 1.37.
_NAMES: Final[Mapping[_Kind, str]] = {
    _SWITCH: """
        cgroupsPerQOS cpuCFSQuota enableContentionProfiling enableControllerAttachDetach enableDebugFlagsHandler
        enableDebuggingHandlers enableProfilingHandler enableServer enableSystemLogHandler enableSystemLogQuery
        failCgroupV1 failSwapOn kernelMemcgNotification localStorageCapacityIsolation makeIPTablesUtilChains
        mergeDefaultEvictionSettings protectKernelDefaults registerNode rotateCertificates runOnce
        seccompDefault serializeImagePulls serverTLSBootstrap singleProcessOOMKill
    """,
    _TEXT: """
        address cgroupDriver cgroupRoot clusterDomain configMapAndSecretChangeDetectionStrategy
        containerLogMaxSize containerRuntimeEndpoint contentType cpuManagerPolicy hairpinMode healthzBindAddress
        imagePullCredentialsVerificationPolicy imageServiceEndpoint kubeReservedCgroup kubeletCgroups
        memoryManagerPolicy memoryReservationPolicy podCIDR podLogsDir providerID reservedSystemCPUs resolvConf
        showHiddenMetricsForVersion staticPodPath staticPodURL systemCgroups systemReservedCgroup tlsCertFile
        tlsMinVersion tlsPrivateKeyFile topologyManagerPolicy topologyManagerScope volumePluginDir
    """,
    _DURATION: """
        containerLogMonitorInterval cpuCFSQuotaPeriod cpuManagerReconcilePeriod evictionPressureTransitionPeriod
        fileCheckFrequency httpCheckFrequency imageMaximumGCAge imageMinimumGCAge nodeStatusReportFrequency
        nodeStatusUpdateFrequency runtimeRequestTimeout shutdownGracePeriod shutdownGracePeriodCriticalPods
        streamingConnectionIdleTimeout syncFrequency volumeStatsAggPeriod
    """,
    _INT32: """
        containerLogMaxFiles containerLogMaxWorkers eventBurst eventRecordQPS evictionMaxPodGracePeriod
        healthzPort imageGCHighThresholdPercent imageGCLowThresholdPercent iptablesDropBit iptablesMasqueradeBit
        kubeAPIBurst kubeAPIQPS maxParallelImagePulls maxPods nodeLeaseDurationSeconds nodeStatusMaxImages
        oomScoreAdj podsPerCore port readOnlyPort registryBurst registryPullQPS
    """,
    _INT64: "maxOpenFiles podPidsLimit",
    _NUMBER: "memoryThrottlingFactor",
    _TEXTS: """
        allowedUnsafeSysctls clusterDNS enforceNodeAllocatable preloadedImagesVerificationAllowlist
        tlsCipherSuites
    """,
    _NUMBERS: "tlsCurvePreferences",
    _TEXTS_BY_NAME: """
        cpuManagerPolicyOptions defaultPodSysctls evictionHard evictionMinimumReclaim evictionSoft
        evictionSoftGracePeriod kubeReserved qosReserved systemReserved topologyManagerPolicyOptions
    """,
    _SWITCHES: "featureGates",
    _OBJECT: """
        authentication authorization crashLoopBackOff logging memorySwap staticPodURLHeader tracing
        userNamespaces
    """,
    _LIST: "registerWithTaints reservedMemory shutdownGracePeriodByPodPriority",
}
_FIELDS: Final = {field: kind for kind, fields in _NAMES.items() for field in fields.split()}


def misfits(kubelet: Mapping[str, Any]) -> dict[str, str]:
    """By field, what is wrong: it is unknown, or the kubelet could not read its value, and would not start."""
    wrong: dict[str, str] = {}
    for field, value in kubelet.items():
        kind = _FIELDS.get(field)
        if kind is None:
            wrong[field] = "unknown field"
        elif value is not None and not kind.holds(value) and not (field == "maxPods" and isinstance(value, str)):
            wrong[field] = f"must be {kind.words}"
    return wrong
