"""The EC2NodeClass that fits the default world: `make up` prints it and tests apply it.

Its selectors find the three tagged subnets and two tagged groups of `state/world.json`, its alias the AL2023 images.
"""

from typing import Any

DISCOVERY = "karpenter.sh/discovery"


def node_class(name: str = "default", cluster_name: str = "dovetail") -> dict[str, Any]:
    """An EC2NodeClass that resolves completely in the default world."""
    found = [{"tags": {DISCOVERY: cluster_name}}]
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": name},
        "spec": {
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "role": f"KarpenterNodeRole-{cluster_name}",
            "subnetSelectorTerms": found,
            "securityGroupSelectorTerms": found,
        },
    }
