"""The words for each reason why a pod finds no node, and for a pod's requests.

The reasons are a closed list in core, and a test requires words for each. Upstream's wording stays in the Events; these
lines are for people who do not know the engine.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from dovetail.answers.wording import amounts_text
from dovetail.model.places.placements import Reason
from dovetail.model.pods import Expression, NodeTerm, Pod, PodShape, Toleration

# Why a NodePool can make no node for the pod.
POOL_WORDS: Final[Mapping[Reason, str]] = {
    "taints": "the pool's nodes carry a taint that the pod does not tolerate",
    "undefined_label": "the pod asks for a label that the pool's nodes do not have",
    "requirements": "the pod asks for labels that the pool's nodes cannot have",
    "volume_requirements": "the pod's volumes are where the pool's nodes cannot be",
    "topology_spread": "one more pod anywhere would break its topology spread",
    "pod_affinity": "there is no place beside the pods that it must be with",
    "pod_anti_affinity": "every place has a pod that it must not be with",
    "limits": "the pool's limits leave no room for another node that would hold it",
    "node_limits": "the pool has as many nodes as its limits allow",
    "min_values": "fewer distinct values are left than a minValues asks for",
    "reserved_offering": "it waits: reserved capacity would suit it and cannot be had now",
    "no_nodepool_instance_types": "no NodePool has an instance type that its own requirements let through",
    "dra": "it uses resource claims, which are ignored (IGNORE_DRA_REQUESTS)",
    "devices": "there are no devices that its resource claims ask for",
    "host_ports": "a host port that it wants is taken",
    "it_requirements": "no instance type has the labels asked for",
    "it_fits": "no instance type that the pool and its limits leave is large enough",
    "it_offering": "no instance type is for sale where and how it is wanted",
    "it_requirements_fits": "no instance type has the labels asked for, and none is large enough",
    "it_requirements_offering": "no instance type has the labels asked for, and none is for sale there",
    "it_fits_offering": "no instance type is large enough, and none is for sale there",
    "it_requirements_fits_offering": "no instance type has the labels, is large enough or is for sale there",
    "it_pair_requirements_fits": "types with the labels that are large enough exist, but none of those is for sale",
    "it_pair_requirements_offering": "types with the labels are for sale, but none of those is large enough",
    "it_pair_fits_offering": "types large enough are for sale, but none of those has the labels asked for",
    "it_tuple": "no single instance type has the labels, is large enough and is for sale",
    "uninitialized_node": "its place would be on a node that is not up yet",
    "not_judged": "the pod cannot be judged, so it is left out: put right what is named here",
    "not_reached": "planning ran out of time before this pod; it is tried again in the next round",
    "volume_lookup": "something that its volumes refer to does not exist",
    "launches_stopped": "nothing is launched for the pool until a tried node is of use, or `dovetail resume --pool`",
    "launches_paused": "a person has paused launches; `dovetail resume` ends that",
}

# Why existing nodes do not take it, in the order in which they are tried.
NODE_WORDS: Final[Mapping[str, str]] = {
    "taints": "have a taint that it does not tolerate",
    "it_fits": "are too full or too small",
    "requirements": "have not the labels it asks for",
    "topology_spread": "would break its spread, affinity, ports or volume limits",
}


def pool_words(reason: Reason) -> str:
    return POOL_WORDS[reason]


def node_words(reason: str) -> str:
    return NODE_WORDS.get(reason, reason.replace("_", " "))


def requested(pod: Pod) -> tuple[str, ...]:
    """What the pod asks for, one line for each thing that could keep it from a node."""
    asked = {name: amount for name, amount in pod.requests.items() if name != "pods"}
    return (amounts_text(asked) or "no resources", *_bounds(pod.shape))


def _bounds(shape: PodShape) -> Iterator[str]:
    if shape.node_selector:
        yield "node selector " + ", ".join(f"{key}={value}" for key, value in shape.node_selector)
    if shape.required_terms:
        yield "node affinity " + " or ".join(_term(term) for term in shape.required_terms)
    for spread in shape.spread:
        yield f"spread over {spread.topology_key}, maxSkew {spread.max_skew}, {spread.when_unsatisfiable}"
    for word, terms in (("affinity", shape.affinity), ("anti-affinity", shape.anti_affinity)):
        for term in terms:
            yield f"pod {word} on {term.topology_key}"
    if shape.host_ports:
        yield "host ports " + ", ".join(str(port.port) for port in shape.host_ports)
    if shape.volumes:
        yield "volume claims " + ", ".join(use.claim_name for use in shape.volumes)
    if shape.tolerations:
        yield "tolerates " + ", ".join(toleration_text(t) for t in shape.tolerations)


def _term(term: NodeTerm) -> str:
    return "(" + " and ".join(expression_text(e) for e in term.expressions) + ")"


def expression_text(expression: Expression) -> str:
    """zone In [a, b]."""
    values = f" [{', '.join(expression.values)}]" if expression.values else ""
    return f"{expression.key} {expression.operator}{values}"


def toleration_text(toleration: Toleration) -> str:
    """A toleration as in a manifest; one without a key tolerates everything."""
    key = toleration.key or "everything"
    value = f"={toleration.value}" if toleration.value else ""
    return f"{key}{value}:{toleration.effect}" if toleration.effect else f"{key}{value}"
