"""Which kinds do we serve, and how does kubectl name and show them (API-1, API-2, AWS-1)?

Adding a kind means one model and one entry here.
"""

from dataclasses import dataclass

from dovetail.api.aws.ec2_node_class import EC2NodeClass
from dovetail.api.karpenter.capacity_buffer import CapacityBuffer
from dovetail.api.karpenter.node_claim import NodeClaim
from dovetail.api.karpenter.node_overlay import NodeOverlay
from dovetail.api.karpenter.node_pool import NodePool
from dovetail.api.kwok.kwok_node_class import KWOKNodeClass
from dovetail.api.own.disruption_policy import DisruptionPolicy
from dovetail.api.own.freeze import Freeze
from dovetail.api.own.node_rollout import NodeRollout
from dovetail.api.schema.structural import ApiModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of `kubectl get`; `wide` ones appear with `-o wide` only."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceKind:
    kind: str
    group: str
    version: str
    plural: str
    model: type[ApiModel]
    columns: tuple[Column, ...]
    short_names: tuple[str, ...] = ()
    scale: tuple[str, str] | None = None
    """Where the wanted and the actual number of replicas stand, for `kubectl scale`."""
    namespaced: bool = False
    categories: tuple[str, ...] = ("karpenter",)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"

    @property
    def crd_name(self) -> str:
        return f"{self.plural}.{self.group}"


def _condition(type_: str) -> str:
    return f'.status.conditions[?(@.type=="{type_}")].status'


def _label(key: str) -> str:
    return ".metadata.labels." + key.replace(".", "\\.")


READY = Column(name="Ready", path=_condition("Ready"))
AGE = Column(name="Age", path=".metadata.creationTimestamp", type="date")

KINDS = (
    ResourceKind(
        kind="NodePool",
        group="karpenter.sh",
        version="v1",
        plural="nodepools",
        model=NodePool,
        scale=(".spec.replicas", ".status.nodes"),
        columns=(
            Column(name="NodeClass", path=".spec.template.spec.nodeClassRef.name"),
            Column(name="Nodes", path=".status.nodes"),
            READY,
            AGE,
            Column(name="Weight", path=".spec.weight", type="integer", wide=True),
            Column(name="CPU", path=".status.resources.cpu", wide=True),
            Column(name="Memory", path=".status.resources.memory", wide=True),
        ),
    ),
    ResourceKind(
        kind="NodeClaim",
        group="karpenter.sh",
        version="v1",
        plural="nodeclaims",
        model=NodeClaim,
        columns=(
            Column(name="Type", path=_label("node.kubernetes.io/instance-type")),
            Column(name="Capacity", path=_label("karpenter.sh/capacity-type")),
            Column(name="Zone", path=_label("topology.kubernetes.io/zone")),
            Column(name="Node", path=".status.nodeName"),
            READY,
            AGE,
            Column(name="ImageID", path=".status.imageID", wide=True),
            Column(name="ID", path=".status.providerID", wide=True),
            Column(name="NodePool", path=_label("karpenter.sh/nodepool"), wide=True),
            Column(name="NodeClass", path=".spec.nodeClassRef.name", wide=True),
            Column(name="Drifted", path=_condition("Drifted"), wide=True),
        ),
    ),
    ResourceKind(
        kind="NodeOverlay",
        group="karpenter.sh",
        version="v1alpha1",
        plural="nodeoverlays",
        short_names=("overlays",),
        model=NodeOverlay,
        columns=(READY, AGE, Column(name="Weight", path=".spec.weight", type="integer", wide=True)),
    ),
    ResourceKind(
        kind="EC2NodeClass",
        group="karpenter.k8s.aws",
        version="v1",
        plural="ec2nodeclasses",
        short_names=("ec2nc", "ec2ncs"),
        model=EC2NodeClass,
        columns=(READY, AGE, Column(name="Role", path=".spec.role", wide=True)),
    ),
    ResourceKind(
        kind="KWOKNodeClass",
        group="karpenter.kwok.sh",
        version="v1alpha1",
        plural="kwoknodeclasses",
        short_names=("kwoknc", "kwokncs"),
        model=KWOKNodeClass,
        columns=(READY, AGE),
    ),
    ResourceKind(
        kind="CapacityBuffer",
        group="autoscaling.x-k8s.io",
        version="v1beta1",
        plural="capacitybuffers",
        short_names=("cb",),
        model=CapacityBuffer,
        namespaced=True,
        categories=("autoscaling",),
        columns=(
            Column(name="Replicas", path=".status.replicas", type="integer"),
            Column(name="Usable", path=_condition("ReadyForProvisioning")),
            Column(name="Provisioned", path=_condition("Provisioning")),
            AGE,
            Column(name="Strategy", path=".spec.provisioningStrategy", wide=True),
        ),
    ),
    ResourceKind(
        kind="DisruptionPolicy",
        group="dovetail.sh",
        version="v1alpha1",
        plural="disruptionpolicies",
        short_names=("dp",),
        model=DisruptionPolicy,
        categories=("dovetail",),
        columns=(
            Column(name="Zone", path=".spec.timeZone"),
            READY,
            AGE,
            Column(name="NodePools", path=".status.nodePools", wide=True),
        ),
    ),
    ResourceKind(
        kind="Freeze",
        group="dovetail.sh",
        version="v1alpha1",
        plural="freezes",
        short_names=("frz",),
        model=Freeze,
        categories=("dovetail",),
        columns=(
            Column(name="From", path=".spec.from"),
            Column(name="Until", path=".spec.until"),
            Column(name="Active", path=_condition("Active")),
            Column(name="Reason", path=".spec.reason"),
            READY,
            AGE,
        ),
    ),
    ResourceKind(
        kind="NodeRollout",
        group="dovetail.sh",
        version="v1alpha1",
        plural="noderollouts",
        short_names=("nro",),
        model=NodeRollout,
        categories=("dovetail",),
        columns=(
            Column(name="Pool", path=".spec.nodePool"),
            Column(name="Step", path=".status.step.name"),
            Column(name="State", path=".status.step.state"),
            Column(name="Target", path=".status.nodes.target", type="integer"),
            Column(name="Old", path=".status.nodes.old", type="integer"),
            READY,
            AGE,
            Column(name="Intent", path=".spec.intent", wide=True),
        ),
    ),
)
