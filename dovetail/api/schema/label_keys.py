"""Which label keys may a spec name (API-10, API-18, API-20, AWS-3)?

Karpenter's own domains are closed: only the labels listed here pass. Karpenter compares the end of the domain and does
not ask for a sub-domain, so `foo-karpenter.sh` is refused too, here as there.
"""

import re

from dovetail.api.schema.rules import Rule

NODE_POOL = "karpenter.sh/nodepool"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
HOSTNAME = "kubernetes.io/hostname"

KARPENTER_KEYS = (CAPACITY_TYPE, NODE_POOL)

_AWS = "karpenter.k8s.aws/"
# AWS-3: what instance types and offerings carry.
AWS_OVERLAY_KEYS = tuple(
    _AWS + name
    for name in (
        "ec2nodeclass",
        "instance-accelerator-count",
        "instance-accelerator-manufacturer",
        "instance-accelerator-name",
        "instance-capability-flex",
        "instance-category",
        "instance-cpu",
        "instance-cpu-manufacturer",
        "instance-cpu-sustained-clock-speed-mhz",
        "instance-ebs-bandwidth",
        "instance-encryption-in-transit-supported",
        "instance-family",
        "instance-generation",
        "instance-gpu-count",
        "instance-gpu-manufacturer",
        "instance-gpu-memory",
        "instance-gpu-name",
        "instance-hypervisor",
        "instance-local-nvme",
        "instance-memory",
        "instance-network-bandwidth",
        "instance-size",
        "nitro-sandbox",
    )
)
# AWS-3: a NodeOverlay may not name these: they belong to a launch, not to a type.
AWS_LAUNCH_KEYS = tuple(
    _AWS + name
    for name in (
        "capacity-reservation-id",
        "capacity-reservation-interruptible",
        "capacity-reservation-type",
        "instance-tenancy",
        "placement-group-id",
        "placement-group-partition",
    )
)
AWS_KEYS = tuple(sorted(AWS_OVERLAY_KEYS + AWS_LAUNCH_KEYS))

# API-20, AWS-3: labels whose meaning is fixed; every one may be named although some lie in a closed domain.
WELL_KNOWN = frozenset(
    (
        *KARPENTER_KEYS,
        *AWS_KEYS,
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "node.kubernetes.io/instance-type",
        "node.kubernetes.io/windows-build",
        "topology.k8s.aws/zone-id",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
    )
)


def _domain_rule(domain: str, allowed: tuple[str, ...]) -> Rule:
    listed = ", ".join(f'"{key}"' for key in allowed)
    closed = "^[^/]*" + domain.replace(".", "[.]") + "(/|$)"
    return Rule(
        message=f'label domain "{domain}" is restricted',
        cel=f'self in [{listed}] || !self.matches("{closed}")',
        holds=lambda key: key in allowed or not key.partition("/")[0].endswith(domain),
    )


def _forbidden(key: str) -> Rule:
    return Rule(message=f'label "{key}" is restricted', cel=f'self != "{key}"', holds=lambda given: given != key)


def of_each_key(rule: Rule) -> Rule:
    """The same rule for every key of a map."""
    of_one_key = re.sub(r"\bself\b", "key", rule.cel)
    return Rule(
        message=rule.message,
        cel=f"self.all(key, {of_one_key})",
        holds=lambda labels: all(rule.holds(key) for key in labels),
    )


NODE_CLAIM_KEY_RULES = (
    _domain_rule("karpenter.sh", KARPENTER_KEYS),
    _forbidden(HOSTNAME),
    _domain_rule("karpenter.k8s.aws", AWS_KEYS),
)
NODE_POOL_KEY_RULES = (*NODE_CLAIM_KEY_RULES, _forbidden(NODE_POOL))
NODE_OVERLAY_KEY_RULES = (*NODE_CLAIM_KEY_RULES[:2], _domain_rule("karpenter.k8s.aws", AWS_OVERLAY_KEYS))
NODE_POOL_LABEL_RULES = tuple(of_each_key(rule) for rule in NODE_POOL_KEY_RULES)
