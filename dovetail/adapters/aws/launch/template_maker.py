"""From a claim and its class to the launch template of each group of types (AWS-83, AWS-96).

Preparing a launch and carrying it out must arrive at the same template, so both use this module.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from dovetail.adapters.aws.kubelet.formulas import RESERVED
from dovetail.adapters.aws.launch.launch_terms import FleetTerms, LaunchTerms
from dovetail.adapters.aws.launch.template_data import Template, TemplateInputs, template_of
from dovetail.adapters.aws.node_class.node_class import NodeClass
from dovetail.adapters.aws.settings import AwsSettings, ClusterFacts
from dovetail.adapters.aws.user_data.bootstrap import Bootstrap, labels_for, taints_for
from dovetail.adapters.aws.user_data.rendering import user_data
from dovetail.model.nodes import NodeClaim
from dovetail.model.values.json import Json

_KEPT_NAMES: Final = 500  # of a class


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateMaker:
    """Templates for one launch: one claim of one class."""

    settings: AwsSettings
    region: str
    facts: ClusterFacts
    node_class: NodeClass
    claim: NodeClaim
    tags: dict[str, str]
    fleet: FleetTerms
    group_id: str | None  # of the placement group

    def template(self, terms: LaunchTerms) -> Template:
        """The template; BadUserData if the class's own user data cannot be merged."""
        start = self.bootstrap(terms)
        return template_of(
            TemplateInputs(
                node_class=self.node_class,
                region=self.region,
                terms=terms,
                fleet=self.fleet,
                group_id=self.group_id,
                user_data=user_data(self.node_class.family, start),
                tags=self.tags,
                ipv6=":" in self.facts.dns_address,
                reserved_capacity=self.settings.reserved_capacity,
            )
        )

    def bootstrap(self, terms: LaunchTerms) -> Bootstrap:
        """What the instances of this group need to join the cluster."""
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
            labels=labels_for(self.claim, self.fleet.capacity_type, custom=self.node_class.family == "Custom"),
            taints=taints_for(self.claim),
            max_pods=_own_max_pods(kubelet) or terms.max_pods,
            kubelet=kubelet,
            raid0=self.node_class.spec.instance_store_policy == "RAID0",
            own=self.node_class.spec.user_data or "",
            image_version=self.node_class.alias_version,
        )


def _own_max_pods(kubelet: Json) -> int:
    """The class's maxPods, as written, if it is a number: the kubelet itself applies podsPerCore to it (AWS-56)."""
    own = kubelet.get("maxPods")
    return own if isinstance(own, int) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """The names known for one version of a class."""

    node_class: NodeClass
    facts: ClusterFacts
    by_shape: dict[Hashable, str]


class TemplateNames:
    """Names of templates by their inputs: claims of one plan need the same, and rendering user data is slow."""

    def __init__(self) -> None:
        self._known: dict[str, _Names] = {}

    def name(self, maker: TemplateMaker, terms: LaunchTerms) -> str:
        """The name; BadUserData if the class's own user data cannot be merged."""
        known, claim = self._of_class(maker), maker.claim
        shape = (
            terms,
            maker.fleet,
            maker.group_id,
            frozenset(claim.labels.items()),
            (claim.taints, claim.startup_taints, claim.node_class),
            frozenset(maker.tags.items()),
        )
        found = known.by_shape.get(shape)
        if found is None:
            found = known.by_shape[shape] = maker.template(terms).name
        return found

    def _of_class(self, maker: TemplateMaker) -> _Names:
        node_class = maker.node_class
        known = self._known.get(node_class.uid)
        if (
            known is None
            or known.node_class is not node_class
            or known.facts != maker.facts
            or len(known.by_shape) >= _KEPT_NAMES
        ):
            known = self._known[node_class.uid] = _Names(node_class=node_class, facts=maker.facts, by_shape={})
        return known
