"""AWS as a provider: what the worker opens if DOVETAIL_CLOUD is `aws`, the default."""

from typing import Final

from dovetail.adapters.aws import names
from dovetail.adapters.aws.account import Account
from dovetail.adapters.aws.adapter import AwsAdapter, Surroundings, UpkeepCluster
from dovetail.adapters.aws.catalogue.pool_overlays import PoolOverlays
from dovetail.adapters.aws.catalogue.shortage_store import NAME as SHORTAGES
from dovetail.adapters.aws.catalogue.shortage_store import ConfigMapStore
from dovetail.adapters.aws.cluster import ServerNow
from dovetail.adapters.aws.cluster_facts import DNS_NAMESPACE, facts_of
from dovetail.adapters.aws.environment import AwsEnvironment, aws_settings
from dovetail.adapters.aws.kept_objects import BucketObjects
from dovetail.adapters.aws.rehearsal import AwsRehearsal
from dovetail.adapters.aws.settings import ClusterFacts
from dovetail.adapters.aws.upkeep.node_classes import ClusterNow
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.objects.watched_kinds import CLAIMS, NODES_AND_CLAIMS, OVERLAYS, POOLS
from dovetail.ports.provider import NodeClassKind, OpenCloud, Provider, ProviderCluster
from dovetail.ports.view import ClusterView

NODE_CLASS: Final = NodeClassKind(kind=names.KIND, group=names.GROUP, version="v1", plural="ec2nodeclasses")

_SERVICES: Final = "/api/v1/services"
_CONFIG_MAPS: Final = "/api/v1/configmaps"


async def open_aws(cluster: ProviderCluster, given: AwsEnvironment) -> OpenCloud:
    """Checked and refreshing in the background."""
    aws = AwsAdapter.open(aws_settings(given, cluster.settings), await _surroundings(cluster, given))
    try:
        await aws.check()
    except BaseException:
        await aws.close()
        raise
    aws.start()
    return OpenCloud(
        cloud=aws.cloud,
        catalogues=aws.catalogues,
        classes=aws.node_class_upkeep(_upkeep_cluster(cluster)),
        interruptions=aws.interruptions,
        close=aws.close,
        supposed=aws.supposed_classes(),
        rehearsal=AwsRehearsal(aws.calls, cluster.settings.cluster),
        priced=aws.priced,
    )


async def _surroundings(cluster: ProviderCluster, given: AwsEnvironment) -> Surroundings:
    shared, view = cluster.settings, cluster.view
    version_now = None if given.eks_control_plane else cluster.version
    services = cluster.objects("Service", _SERVICES, DNS_NAMESPACE)
    config_maps = cluster.objects("ConfigMap", _CONFIG_MAPS, shared.namespace)
    facts = ClusterFacts(endpoint=shared.endpoint, ca_bundle=cluster.authority())
    return Surroundings(
        node_classes=lambda: cluster.node_classes(NODE_CLASS),
        cluster=await facts_of(services, version_now, facts),
        store=ConfigMapStore(config_maps),
        account=Account(config_maps, SHORTAGES),
        claims=lambda: view.snapshot(CLAIMS).claims.values(),
        claims_with_nodes=lambda: _claims_with_nodes(view),
        overlays=PoolOverlays(
            overlays=lambda: view.snapshot(OVERLAYS).overlays.values(), pools=lambda: view.snapshot(POOLS).pools
        ),
        server=ServerNow(version_now, cluster.authority),
        agent=shared.agent,
        read_only=shared.read_only,
    )


def _upkeep_cluster(cluster: ProviderCluster) -> UpkeepCluster:
    view = cluster.view
    return UpkeepCluster(
        objects=cluster.objects(NODE_CLASS.kind, NODE_CLASS.path, ""),
        claims=cluster.claims,
        notices=cluster.notices,
        nodes=cluster.nodes,
        now=ClusterNow(
            claims=lambda: view.snapshot(CLAIMS).claims.values(), pools=lambda: view.snapshot(POOLS).pools.values()
        ),
    )


def _claims_with_nodes(view: ClusterView) -> list[tuple[NodeClaim, Node]]:
    """Claims with their nodes, as the cache has them."""
    snapshot = view.snapshot(NODES_AND_CLAIMS)
    nodes = snapshot.nodes
    return [(claim, nodes[claim.node_name]) for claim in snapshot.claims.values() if claim.node_name in nodes]


PROVIDER: Final = Provider(
    name="aws",
    node_classes=(NODE_CLASS,),
    retired=(NodeClassKind(kind="AWSNodeTemplate", group=names.GROUP, version="v1alpha1", plural="awsnodetemplates"),),
    labels=names.WELL_KNOWN,
    settings=AwsEnvironment,
    open=open_aws,
    rights=tuple((names.GROUP, each, ("patch",)) for each in ("ec2nodeclasses", "ec2nodeclasses/status")),
    reservation_labels=frozenset(names.RESERVATION_LABELS),
    buckets={"s3": BucketObjects},
    console="aws ec2 get-console-output --latest --output text --instance-id {instance}",
)
