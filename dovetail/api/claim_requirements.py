"""What would the API server refuse about a requirement, if it stood on a NodeClaim?

A NodeClaim is written long after its requirements were put together, and one that is refused keeps everything waiting
that was planned onto its node. So what puts them together asks here, where the definition itself answers: the models
from which the CRD is made, and what every object's labels must look like, because a requirement on a label of the
user's own is written as a label too.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dovetail.api.runtime_checks import is_label_value, is_qualified_name
from dovetail.api.schema.requirements import NodeClaimRequirements
from dovetail.api.schema.structural import ApiModel
from dovetail.api.validation import InvalidObject, parse

_NUMBER: Final = re.compile(r"\[\d+\]")  # of the entry: it says nothing before the claim is written


class _Spec(ApiModel):
    requirements: NodeClaimRequirements


def requirement_faults(key: str, entries: Sequence[Mapping[str, Any]], values: Sequence[str]) -> tuple[str, ...]:
    """What is wrong with the entries for one key, as they would stand in spec.requirements, and with the values that
    could become its label; each with the field in front."""
    return (*_refused(entries), *_label_faults(key, values))


def _refused(entries: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    try:
        parse(_Spec, {"requirements": list(entries)})
    except InvalidObject as error:
        return tuple(f"spec.{_NUMBER.sub('', field, count=1)}: {message}" for field, message in error.problems)
    return ()


def _label_faults(key: str, values: Sequence[str]) -> tuple[str, ...]:
    if not is_qualified_name(key):
        return ("metadata.labels: the key is not a qualified name",)
    wrong = next((value for value in values if not is_label_value(value)), None)
    return () if wrong is None else (f"metadata.labels: {wrong[:80]!r} is not a label value",)
