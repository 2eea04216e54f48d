"""The objects of `dovetail plan -f FILE`: read, applied to the existing ones, and judged as the API server would.

The result is what the server would store: defaults are filled in, and a refusal is one line that names file, object and
field. As kubectl does by default, an unknown field is refused and not silently dropped.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, get_args

import orjson

from dovetail.answers.change.reading import MOST_BYTES, bodies_of
from dovetail.answers.failures import CommandFailed, NotUnderstood
from dovetail.api.kinds import KINDS, ResourceKind
from dovetail.api.schema.structural import ApiModel
from dovetail.api.validation import InvalidObject, parse, refuse_change
from dovetail.model.values.json import Json
from dovetail.model.values.quoting import one_line

STANDARD_INPUT: Final = Path("-")
POOL: Final = "NodePool"
MOST_OBJECTS: Final = 250  # each is asked of the API server

_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_KNOWN: Final = {kind.kind: kind for kind in KINDS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One object of the file. `place`: the file and the number of the document, for messages."""

    kind: str
    name: str
    body: Json
    place: str


def called(file: Path) -> str:
    """The file's name, for messages."""
    return "standard input" if file == STANDARD_INPUT else str(file)


def text_of(file: Path) -> str:
    """The file's text; of one that is too large, only as much as shows that."""
    try:
        if file == STANDARD_INPUT:
            return sys.stdin.read(MOST_BYTES + 1)
        with file.open(encoding="utf-8") as opened:
            return opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise CommandFailed(f"{called(file)}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise CommandFailed(f"{called(file)}: it is no YAML: {' '.join(str(error).split())}") from None


def documents_of(text: str, called: str, node_classes: frozenset[tuple[str, str]]) -> tuple[Document, ...]:
    """The objects of a text, which messages call `called`. It takes up to a second: never on the event loop of a
    worker."""
    found: dict[tuple[str, str], Document] = {}
    for body in bodies_of(text, called):
        for item in _items(body.value):
            document = _document(item, body.place, node_classes)
            if (document.kind, document.name) in found:
                raise NotUnderstood(f"{document.place}: {document.kind} {document.name}: it stands in the file twice")
            if len(found) == MOST_OBJECTS:
                raise NotUnderstood(f"{document.place}: more than {MOST_OBJECTS} objects; plan them in parts")
            found[document.kind, document.name] = document
    if not found:
        raise NotUnderstood(f"{one_line(called)}: there is no object in it")
    return tuple(found.values())


def _items(body: Any) -> Iterator[Any]:
    """The object, or those of a List; none for an empty document."""
    if isinstance(body, dict) and body.get("kind") == "List" and isinstance(body.get("items"), list):
        yield from body["items"]
    elif body is not None:
        yield body


def _document(body: Any, place: str, node_classes: frozenset[tuple[str, str]]) -> Document:
    if not isinstance(body, dict):
        raise NotUnderstood(f"{place}: it is no object, but {type(body).__name__}")
    kind, metadata = body.get("kind"), body.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(kind, str) or not kind:
        raise NotUnderstood(f"{place}: kind: Required value")
    if not isinstance(name, str) or not name:
        raise NotUnderstood(f"{place}: {kind}: metadata.name: Required value")
    group = str(body.get("apiVersion") or "").partition("/")[0]
    wanted = {POOL: {"karpenter.sh"}}
    for of_class, class_kind in node_classes:
        wanted.setdefault(class_kind, set()).add(of_class)
    if kind not in wanted:
        raise NotUnderstood(f"{place}: {kind} {name}: only {', '.join(sorted(wanted))} can be planned")
    if group not in wanted[kind]:
        raise NotUnderstood(f"{place}: {kind} {name}: apiVersion: {body.get('apiVersion')!r} is of another kind")
    return Document(kind=kind, name=name, body=body, place=place)


def applied(document: Document, live: Json | None) -> Json:
    """The object as it would be once the document is applied to the existing one."""
    body = _new(document) if live is None else _changed(document, live)
    kind = _KNOWN.get(document.kind)
    if kind is None:
        return body
    try:
        return _admitted(kind, document, body, live)
    except InvalidObject as error:
        raise NotUnderstood(f"{document.place}: {error}") from None


def _admitted(kind: ResourceKind, document: Document, body: Json, live: Json | None) -> Json:
    if document.body.get("apiVersion") != kind.api_version:
        wrong = f"{document.body.get('apiVersion')!r} is not served, only {kind.api_version}"
        raise InvalidObject(kind.kind, document.name, (("apiVersion", wrong),))
    given = document.body.get("spec")
    try:
        model = parse(kind.model, body)
    except InvalidObject as error:  # a missing field may only have been misspelt
        unknown = _named_unknown(unknown_to(kind.model.model_fields["spec"].annotation, given, "spec"))
        raise InvalidObject(error.kind, error.name, (*unknown, *error.problems)) from None
    kept = model.as_object()
    unknown = _named_unknown(_unknown(given, kept.get("spec"), "spec"))
    if unknown:
        raise InvalidObject(kind.kind, document.name, unknown)
    if live is not None:
        _refuse_change(kind, live, body)
    spec = kept["spec"]
    metadata = body["metadata"]
    if live is not None and spec != live.get("spec"):
        metadata = {**metadata, "generation": int(metadata.get("generation") or 1) + 1}
    return {**body, "spec": spec, "metadata": metadata}


def _named_unknown(paths: Iterable[str]) -> tuple[tuple[str, str], ...]:
    return tuple((path, "unknown field") for path in paths)


def _refuse_change(kind: ResourceKind, live: Json, body: Json) -> None:
    try:
        before = parse(kind.model, live)
    except InvalidObject:
        return  # an object that already breaks the rules may be changed
    refuse_change(before, parse(kind.model, body))


def _new(document: Document) -> Json:
    given = document.body["metadata"]
    metadata = {key: given[key] for key in ("name", "labels", "annotations") if given.get(key)}
    made = {"uid": f"supposed-{document.name}", "generation": 1, "resourceVersion": "1"}
    return {**{key: value for key, value in document.body.items() if key != "status"}, "metadata": {**made, **metadata}}


def _changed(document: Document, live: Json) -> Json:
    given, stands = document.body["metadata"], live["metadata"]
    last = _last_applied(live)
    metadata = dict(stands)
    for key in ("labels", "annotations"):
        before = ((last or {}).get("metadata") or {}).get(key) or {}
        metadata[key] = _merged(given.get(key) or {}, stands.get(key) or {}, before)
    if last is None:
        # This field cannot be reverted: the server refuses to make another pool static, or the other way round.
        kept = {key: value for key, value in (live.get("spec") or {}).items() if key == "replicas"}
        spec = {**kept, **(document.body.get("spec") or {})}
    else:
        spec = _merged(document.body.get("spec") or {}, live.get("spec") or {}, last.get("spec") or {})
    # Another version than that of the existing object, for code that caches by version.
    metadata["resourceVersion"] = str(int(stands.get("resourceVersion") or 0) + 1)
    return {**live, "metadata": metadata, "spec": spec}


def _last_applied(live: Json) -> Json | None:
    text = (live["metadata"].get("annotations") or {}).get(_LAST_APPLIED)
    try:
        found = orjson.loads(text) if text else None
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def _merged(given: Json, live: Json, before: Json) -> Json:
    """The object after kubectl apply: the file's fields and those that the file never named, but none that it no longer
    names."""
    kept = {key: value for key, value in live.items() if key not in before or key in given}
    for key, value in given.items():
        inner = live.get(key)
        if isinstance(value, dict) and isinstance(inner, dict):
            stood = before.get(key)
            kept[key] = _merged(value, inner, stood if isinstance(stood, dict) else {})
        else:
            kept[key] = value
    return kept


def unknown_to(hint: Any, given: Any, path: str) -> Iterator[str]:
    """The fields of an unreadable object that its model does not know. `hint`: the type of what was given."""
    if isinstance(given, list):
        for number, one in enumerate(given):
            yield from unknown_to(hint, one, f"{path}[{number}]")
        return
    model = next(_models_in(hint), None)
    if model is None or not isinstance(given, dict):
        return
    known = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
    for key, value in given.items():
        if key in known:
            yield from unknown_to(known[key], value, f"{path}.{key}")
        elif value is not None:
            yield f"{path}.{key}"


def _models_in(hint: Any) -> Iterator[type[ApiModel]]:
    """The models that a type consists of: itself, or what it may contain."""
    if isinstance(hint, type) and issubclass(hint, ApiModel):
        yield hint
    for part in get_args(hint):
        yield from _models_in(part)


def _unknown(given: Any, kept: Any, path: str) -> Iterator[str]:
    """The fields that the API server would not store."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for key, value in given.items():
            if value is None:
                continue
            if key not in kept:
                yield f"{path}.{key}"
            else:
                yield from _unknown(value, kept[key], f"{path}.{key}")
    elif isinstance(given, list) and isinstance(kept, list):
        for number, (one, other) in enumerate(zip(given, kept, strict=False)):
            yield from _unknown(one, other, f"{path}[{number}]")
