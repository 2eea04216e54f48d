"""A real Kubernetes control plane on loopback: etcd, API server, controllers, scheduler, and kwok for the kubelets.

`python -m testbed.plane` and the `plane` fixture of tests/cluster start one; the AWS server joins nodes to it. In
Python:

    plane = ControlPlane(Path(".dovetail/mine/plane"), find_binaries(print))
    state = await plane.start()       # ports, kubeconfig, audit log, process ids
    await plane.stop()

Nodes live while they carry the label `dovetail.test/kubelet: alive` (see kubelet.yaml for what kwok does for them).
"""

from testbed.plane.api import ApiClient, ApiResponse
from testbed.plane.audit import AuditEntry, AuditLog, read_audit
from testbed.plane.binaries import Binaries, TestbedUnavailable, find_binaries
from testbed.plane.parts import PlaneSettings
from testbed.plane.plane import ControlPlane, PlaneError, stop_plane
from testbed.plane.state import PlaneState, read_state

# A node with this label and value is kept alive by kwok; with any other value its kubelet is silent. A label, not an
# annotation: kwok's annotation selector drops the event that takes a node away from it, and goes on beating.
KUBELET_LABEL = "dovetail.test/kubelet"
KUBELET_ALIVE = "alive"
KUBELET_SILENT = "silent"

__all__ = [
    "KUBELET_ALIVE",
    "KUBELET_LABEL",
    "KUBELET_SILENT",
    "ApiClient",
    "ApiResponse",
    "AuditEntry",
    "AuditLog",
    "Binaries",
    "ControlPlane",
    "PlaneError",
    "PlaneSettings",
    "PlaneState",
    "TestbedUnavailable",
    "find_binaries",
    "read_audit",
    "read_state",
    "stop_plane",
]
