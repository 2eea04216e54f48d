"""nodepool-hash, ec2nodeclass-hash: the structural hashes, compared exactly."""

from typing import Any

from dovetail.adapters.kubernetes_json.parsing.class_hashes import ami_family, ec2_node_class_hash
from dovetail.adapters.kubernetes_json.parsing.hashes import template_hash


def nodepool_hash(case: dict[str, Any]) -> str | None:
    """One template (DIS-177, NPL-1)."""
    template, expected = case["input"]["template"], case["expected"]
    try:
        ours = template_hash(template)
    except ValueError as error:
        return None if "parseError" in expected else f"ours does not read it: {error}"
    if "parseError" in expected:
        return f"ours reads what upstream does not: {ours}"
    return None if ours == expected["hash"] else f"{ours} is not {expected['hash']}"


def ec2_class_hash(case: dict[str, Any]) -> str | None:
    """One EC2NodeClass (AWS-115)."""
    given, expected = case["input"], case["expected"]
    try:
        ours = (ami_family(given["spec"]), ec2_node_class_hash(given["spec"], given.get("caBundle")))
    except ValueError as error:
        return None if "parseError" in expected else f"ours does not read it: {error}"
    theirs = (expected.get("amiFamily"), expected.get("hash"))
    return None if ours == theirs else f"{ours} is not {theirs}"


KINDS = {"nodepool-hash": nodepool_hash, "ec2nodeclass-hash": ec2_class_hash}
