"""The page of custom resources: what `kubectl` calls and shows, and the fields with their words."""

from collections.abc import Iterator
from typing import Any, Final

from docs.tools.reference.tables import code, table
from dovetail.api.kinds import KINDS, ResourceKind
from dovetail.api.schema.structural_schema import structural_schema

DEEPEST: Final = 5  # levels of fields; below that the schema itself is clearer (`kubectl explain`)
LONGEST: Final = 160


def kinds_page() -> str:
    """The whole page."""
    overview = table(
        ("kind", "API version", "short names", "columns of `kubectl get`"),
        [
            (f"[{k.kind}](#{k.kind.lower()})", code(k.api_version), ", ".join(map(code, k.short_names)), _columns(k))
            for k in KINDS
        ],
    )
    return f"""# Custom resources

The definitions in `deploy/crds` are Karpenter's API: the same groups, versions, fields, defaults and checks. A
cluster that has
Karpenter's keeps them. Those of `dovetail.sh` are ours; a cluster that does not have them is as before.
`kubectl explain nodepool.spec` prints what stands here, and what is nested deeper. Columns
in brackets need
`-o wide`.

{overview}

{"".join(_section(kind) for kind in KINDS)}"""


def _columns(kind: ResourceKind) -> str:
    return ", ".join(f"({column.name})" if column.wide else column.name for column in kind.columns)


def _section(kind: ResourceKind) -> str:
    rows = list(_fields(structural_schema(kind.model).get("properties", {}).get("spec", {}), "spec", 1))
    return f"## {kind.kind}\n\n{table(('field', 'type', ''), rows)}\n\n"


def _fields(schema: dict[str, Any], path: str, depth: int) -> Iterator[tuple[str, str, str]]:
    needed = schema.get("required", [])
    for name, field in schema.get("properties", {}).items():
        below = field.get("items", field) if field.get("type") == "array" else field
        here = f"{path}.{name}" + ("[]" if field.get("type") == "array" else "")
        words = " ".join(filter(None, (_first_sentence(field.get("description", "")), _limits(field, name in needed))))
        yield code(here), _type(field), words
        if depth < DEEPEST:
            yield from _fields(below, here, depth + 1)


def _type(field: dict[str, Any]) -> str:
    if field.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if field.get("type") == "array":
        return f"list of {field.get('items', {}).get('type', 'any')}s"
    return str(field.get("type", "any"))


def _limits(field: dict[str, Any], is_needed: bool) -> str:
    said = ["Required."] if is_needed else []
    if "default" in field:
        said.append(f"Default: `{field['default']}`.")
    if "enum" in field:
        said.append("One of " + ", ".join(code(str(value)) for value in field["enum"]) + ".")
    return " ".join(said)


def _first_sentence(text: str) -> str:
    sentence = " ".join(text.split()).partition(". ")[0].rstrip(".")
    shown = sentence if len(sentence) <= LONGEST else sentence[: LONGEST - 1].rsplit(" ", 1)[0] + " …"
    return f"{shown}." if shown else ""
