"""ec2nodeclass-hash: the hash of an EC2NodeClass, compared exactly (W-116)."""

from typing import Any

from adapters.aws.class_hash import HASH_VERSION, class_hash


def ec2nodeclass_hash(case: dict[str, Any]) -> str | None:
    """One spec, with the resolved family and the cluster's CA bundle."""
    given, expected = case["input"], case["expected"]
    ours = class_hash(given["spec"], expected["amiFamily"], given.get("caBundle") or "")
    if expected["version"] != HASH_VERSION:
        return f"our version is {HASH_VERSION}, not {expected['version']}"
    return None if ours == expected["hash"] else f"{ours} is not {expected['hash']}"


KINDS = {"ec2nodeclass-hash": ec2nodeclass_hash}
