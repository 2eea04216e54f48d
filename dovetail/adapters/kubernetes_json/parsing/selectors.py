"""Selectors, terms, taints and owners: the small parts that many kinds of object share.

matchLabels become In expressions, so that decisions know one form only.
"""

from collections.abc import Iterable, Mapping

from dovetail.adapters.kubernetes_json.parsing.reading import list_of, optional_number, text_of
from dovetail.model.pods import Expression, LabelSelector, NodeTerm, Owner, Toleration
from dovetail.model.scheduling.taints import Taint
from dovetail.model.values.json import ReadOnlyJson
from dovetail.model.values.remembering import MEGABYTE, remembered


@remembered(8 * MEGABYTE)
def _expression(key: str, operator: str, values: tuple[str, ...], min_values: int | None) -> Expression:
    return Expression(
        key=text_of(key), operator=text_of(operator), values=values, min_values=optional_number(min_values)
    )


def parse_expression(raw: ReadOnlyJson) -> Expression:
    """One requirement of a node selector, a label selector or a NodePool; equal ones are one object."""
    return _expression(raw["key"], raw["operator"], tuple(map(str, list_of(raw.get("values")))), raw.get("minValues"))


def parse_expressions(raw: Iterable[ReadOnlyJson] | None) -> tuple[Expression, ...]:
    return tuple([parse_expression(entry) for entry in raw]) if raw else ()


def parse_label_selector(raw: ReadOnlyJson | None) -> LabelSelector | None:
    """A label selector; an absent one stays None, because it means nothing rather than everything."""
    if raw is None:
        return None
    labels = raw.get("matchLabels") or {}
    equal = [_expression(key, "In", (str(labels[key]),), None) for key in sorted(labels)]
    return LabelSelector(expressions=(*equal, *parse_expressions(raw.get("matchExpressions"))))


def equality_selector(labels: Mapping[str, str] | None) -> LabelSelector | None:
    """The old form of a selector: a map of labels. A Service without one selects nothing."""
    return None if not labels else parse_label_selector({"matchLabels": labels})


def parse_node_term(raw: ReadOnlyJson, weight: int = 0) -> NodeTerm:
    return NodeTerm(
        expressions=parse_expressions(raw.get("matchExpressions")),
        weight=weight,
        has_match_fields=bool(raw.get("matchFields")),
    )


def parse_node_terms(raw: ReadOnlyJson | None) -> tuple[NodeTerm, ...]:
    """A node selector: its terms are or-ed."""
    return tuple([parse_node_term(term) for term in (raw or {}).get("nodeSelectorTerms") or ()])


def parse_toleration(raw: ReadOnlyJson) -> Toleration:
    return Toleration(
        key=text_of(raw.get("key") or ""),
        operator=text_of(raw.get("operator") or "Equal"),
        value=text_of(raw.get("value") or ""),
        effect=text_of(raw.get("effect") or ""),
        seconds=optional_number(raw.get("tolerationSeconds")),
    )


def parse_taint(raw: ReadOnlyJson) -> Taint:
    return Taint(
        key=text_of(raw["key"]), effect=text_of(raw.get("effect") or ""), value=text_of(raw.get("value") or "")
    )


def parse_taints(raw: Iterable[ReadOnlyJson] | None) -> tuple[Taint, ...]:
    return tuple([parse_taint(entry) for entry in raw]) if raw else ()


@remembered(2 * MEGABYTE)
def _owner(api_version: str, kind: str, name: str, uid: str, controller: bool) -> tuple[Owner]:
    texts = (text_of(part) for part in (api_version, kind, name, uid))
    api_version, kind, name, uid = texts
    return (Owner(api_version=api_version, kind=kind, name=name, uid=uid, controller=controller),)


def parse_owners(metadata: ReadOnlyJson) -> tuple[Owner, ...]:
    """metadata.ownerReferences; replicas of one workload share the object."""
    references = metadata.get("ownerReferences")
    if not references:
        return ()
    owners: tuple[Owner, ...] = ()
    for o in references:  # nearly always one
        owners += _owner(
            o.get("apiVersion") or "", o["kind"], o.get("name") or "", o.get("uid") or "", bool(o.get("controller"))
        )
    return owners
