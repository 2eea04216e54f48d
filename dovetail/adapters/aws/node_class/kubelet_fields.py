"""The fields of a kubelet's configuration, and what each may hold (AWS-23)."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from dovetail.model.values.durations import DurationError, parse_nanoseconds
from dovetail.model.values.resources import is_quantity


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


def _is_quantity(value: Any) -> bool:
    return type(value) in (str, int, float) and is_quantity(value)


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
_LIST: Final = _Kind("a list", _is(list))
_HEADERS: Final = _Kind("an object of lists of texts", _map_to(_list_of(_is(str))))
_QUANTITY: Final = _Kind("a quantity", _is_quantity)
_QUANTITIES: Final = _Kind("an object of quantities", _map_to(_is_quantity))
_LEVEL: Final = _Kind("a whole number from 0 on", lambda value: _is_whole(value, 33) and value >= 0)
_FLUSHED: Final = _Kind("a duration such as 30s", lambda value: _is_duration(value) or _is_whole(value, 64))
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
    _HEADERS: "staticPodURLHeader",
    _LIST: "registerWithTaints",
}
_LOGGED: Final = {"splitStream": _SWITCH, "infoBufferSize": _QUANTITY}
_NESTED: Final[Mapping[str, Any]] = {  # a list holds what each of its objects has
    "authentication": {
        "x509": {"clientCAFile": _TEXT},
        "webhook": {"enabled": _SWITCH, "cacheTTL": _DURATION},
        "anonymous": {"enabled": _SWITCH},
    },
    "authorization": {
        "mode": _TEXT,
        "webhook": {"cacheAuthorizedTTL": _DURATION, "cacheUnauthorizedTTL": _DURATION},
    },
    "crashLoopBackOff": {"maxContainerRestartPeriod": _DURATION},
    "logging": {
        "format": _TEXT,
        "flushFrequency": _FLUSHED,
        "verbosity": _LEVEL,
        "vmodule": [{"filePattern": _TEXT, "verbosity": _LEVEL}],
        "options": {"text": _LOGGED, "json": _LOGGED},
    },
    "memorySwap": {"swapBehavior": _TEXT},
    "tracing": {"endpoint": _TEXT, "samplingRatePerMillion": _INT32},
    "userNamespaces": {"idsPerPod": _INT64},
    "reservedMemory": [{"numaNode": _INT32, "limits": _QUANTITIES}],
    "shutdownGracePeriodByPodPriority": [{"priority": _INT32, "shutdownGracePeriodSeconds": _INT64}],
}
_FIELDS: Final[Mapping[str, Any]] = {
    **{field: kind for kind, fields in _NAMES.items() for field in fields.split()},
    **_NESTED,
}


def misfits(kubelet: Mapping[str, Any]) -> dict[str, str]:
    """By field, what is wrong in it: it is unknown, or the kubelet could not read its value, and would not start."""
    wrong: dict[str, str] = {}
    for field, value in kubelet.items():
        if field == "maxPods" and isinstance(value, str):
            continue  # a formula
        if words := "; ".join(_misfits(field, _FIELDS.get(field), value)):
            wrong[field] = words
    return wrong


def _misfits(path: str, kind: Any, value: Any) -> Iterator[str]:
    if kind is None:
        yield f"{path}: unknown field"
    elif value is None:
        return
    elif isinstance(kind, _Kind):
        if not kind.holds(value):
            yield f"{path}: must be {kind.words}"
    elif not isinstance(value, type(kind)):
        yield f"{path}: must be {'a list' if isinstance(kind, list) else 'an object'}"
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _misfits(f"{path}[{number}]", kind[0], each)
    else:
        for field, each in value.items():
            yield from _misfits(f"{path}.{field}", kind.get(field), each)
