"""nodepool-hash, ec2nodeclass-hash: the structural hashes, compared exactly."""

from typing import Any

from adapters.kube.parsing.hashes import template_hash


def nodepool_hash(case: dict[str, Any]) -> str | None:
    """One template (D-177, N-1)."""
    template, expected = case["input"]["template"], case["expected"]
    try:
        ours = template_hash(template)
    except ValueError as error:
        return None if "parseError" in expected else f"ours does not read it: {error}"
    if "parseError" in expected:
        return f"ours reads what upstream does not: {ours}"
    return None if ours == expected["hash"] else f"{ours} is not {expected['hash']}"


KINDS = {"nodepool-hash": nodepool_hash}
