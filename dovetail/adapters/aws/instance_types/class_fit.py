"""Whether instances of a type can be launched as a class asks (AWS-63).

Asked once per type and class. A type that cannot stays in the catalogue with nothing available, so that people see why
it is not chosen.
"""

from dovetail.adapters.aws.instance_types.type_facts import TypeFacts
from dovetail.adapters.aws.node_class.node_class import NodeClass

_NESTED = "nested-virtualization"


def unsuited(facts: TypeFacts, node_class: NodeClass) -> str:
    """Why type and class are incompatible, empty where they are not; the placement group is judged where it is
    known."""
    spec = node_class.spec
    if node_class.family == "AL2023" and facts.family == "a1":
        return "AL2023 does not run on a1"  # its kernel needs a newer processor
    nested = spec.cpu_options is not None and spec.cpu_options.nested_virtualization == "enabled"
    if nested and _NESTED not in facts.features:
        return "no nested virtualization (spec.cpuOptions)"
    if spec.wants_enclaves and not facts.enclaves:
        return "no enclaves (spec.enclaveOptions)"
    if spec.connection_tracking is not None and facts.hypervisor != "nitro":
        return "no Nitro hypervisor (spec.connectionTracking)"
    if spec.network_interfaces and not _has_interfaces(facts, node_class):
        return "not the network interfaces of the class (spec.networkInterfaces)"
    return ""


def _has_interfaces(facts: TypeFacts, node_class: NodeClass) -> bool:
    most = dict(facts.cards)
    wanted = node_class.spec.network_interfaces or ()
    if not facts.ena or any(each.device_index >= most.get(each.network_card_index, 0) for each in wanted):
        return False
    return sum(1 for each in wanted if each.interface_type == "efa-only") <= facts.efa_interfaces
