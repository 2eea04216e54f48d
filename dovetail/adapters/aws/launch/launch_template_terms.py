"""From a claim and its class to the launch template of each group of types (W-83, W-96).

Both must come to the same, so both come here.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from dovetail.adapters.aws import names
from dovetail.adapters.aws.instance_types.capacity import Sizes
from dovetail.adapters.aws.kubelet.formulas import RESERVED
from dovetail.adapters.aws.launch.template_data import Template, TemplateWish, template_of
from dovetail.adapters.aws.node_class.node_class import NodeClass
from dovetail.adapters.aws.settings import AwsSettings, ClusterFacts
from dovetail.adapters.aws.user_data.bootstrap import Bootstrap, labels_for, taints_for
from dovetail.adapters.aws.user_data.rendering import user_data
from dovetail.model.nodes import NodeClaim

_KEPT_NAMES: Final = 500  # of a class

Amounts = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedAmounts:
    """kubeReserved and systemReserved where formulas gave them (W-24): what then tells templates apart (W-83)."""

    kube: Amounts = ()
    system: Amounts = ()

    @property
    def fields(self) -> dict[str, dict[str, str]]:
        """As spec.kubelet has them."""
        return {name: dict(each) for name, each in zip(RESERVED, (self.kube, self.system), strict=True) if each}


def reserved_amounts(sizes: Sizes) -> ReservedAmounts | None:
    """Of a type; None where the class has no formulas."""
    if sizes.kubelet is None:
        return None
    kube, system = (
        tuple(sorted((key, str(value)) for key, value in (sizes.kubelet.get(field) or {}).items()))
        for field in RESERVED
    )
    return ReservedAmounts(kube=kube, system=system)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What one group of types has in common, beside the claim and the class."""

    capacity_type: str
    tenancy: str
    image: str
    max_pods: int
    efa: int = 0
    reservation_id: str = ""
    market: str = ""
    group_id: str = ""
    partition: str = ""
    reserved: ReservedAmounts | None = None  # None: as the class writes them


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateMaker:
    """Templates for one claim of one class."""

    settings: AwsSettings
    region: str
    facts: ClusterFacts
    node_class: NodeClass
    claim: NodeClaim
    tags: dict[str, str]

    def template(self, terms: Terms) -> Template:
        """The template; BadUserData where the class's own user data cannot be merged."""
        start = self.bootstrap(terms)
        return template_of(
            TemplateWish(
                node_class=self.node_class,
                region=self.region,
                image=terms.image,
                user_data=user_data(self.node_class.family, start),
                tags=self.tags,
                capacity_type=terms.capacity_type,
                tenancy=terms.tenancy,
                efa=terms.efa,
                enclaves=names.SANDBOX_REQUEST in self.claim.requests,
                ipv6=":" in self.facts.dns_address,
                reserved_capacity=self.settings.reserved_capacity,
                reservation_id=terms.reservation_id,
                market=terms.market,
                group_id=terms.group_id,
                partition=terms.partition,
            )
        )

    def bootstrap(self, terms: Terms) -> Bootstrap:
        """What the machines of this group are told."""
        kubelet = self.node_class.kubelet
        if terms.reserved is not None:
            kubelet = {**{key: value for key, value in kubelet.items() if key not in RESERVED}, **terms.reserved.fields}
        own_dns = kubelet.get("clusterDNS")
        default_dns = (self.facts.dns_address,) if self.facts.dns_address else ()
        return Bootstrap(
            cluster=self.settings.cluster,
            endpoint=self.facts.endpoint,
            ca_bundle=self.facts.ca_bundle,
            service_cidr=self.facts.service_cidr,
            dns=tuple(own_dns) if own_dns else default_dns,
            labels=labels_for(self.claim, terms.capacity_type, custom=self.node_class.family == "Custom"),
            taints=taints_for(self.claim),
            max_pods=terms.max_pods,
            kubelet=kubelet,
            raid0=self.node_class.spec.instance_store_policy == "RAID0",
            own=self.node_class.spec.user_data or "",
            image_version=self.node_class.alias_version,
        )


class TemplateNames:
    """Names of templates by what shapes them: claims of one plan ask for the same, and rendering it is dear."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[NodeClass, ClusterFacts, dict[Hashable, str]]] = {}

    def name(self, maker: TemplateMaker, terms: Terms) -> str:
        """The name; BadUserData where the class's own user data cannot be merged."""
        node_class, claim = maker.node_class, maker.claim
        known = self._known.get(node_class.uid)
        if known is None or known[0] is not node_class or known[1] != maker.facts or len(known[2]) >= _KEPT_NAMES:
            known = self._known[node_class.uid] = (node_class, maker.facts, {})
        key = (
            terms,
            frozenset(claim.labels.items()),
            (claim.taints, claim.startup_taints, claim.node_class),
            names.SANDBOX_REQUEST in claim.requests,
            frozenset(maker.tags.items()),
        )
        found = known[2].get(key)
        if found is None:
            found = known[2][key] = maker.template(terms).name
        return found
