"""JSON Schemas of what `-o json` prints and the workers' API answers, made of the very classes that are printed.

One schema a kind. Within a version fields are added, and neither renamed nor removed, so a schema allows fields that it
does not name; a test that compares answers with it does not.
"""

import json
import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from dovetail.answers.change.answer import ChangeAnswer
from dovetail.answers.change.forecast import ForecastAnswer
from dovetail.answers.doctor.doctor import DoctorAnswer
from dovetail.answers.explain.explain_node import NodeAnswer
from dovetail.answers.explain.explain_pod import PodAnswer
from dovetail.answers.fleet.answer import FleetAnswer
from dovetail.answers.plan.plan import PlanAnswer
from dovetail.answers.questions.names import NamesAnswer
from dovetail.answers.questions.versions import VersionsAnswer
from dovetail.answers.record.history import HistoryAnswer
from dovetail.answers.record.log import LogAnswer
from dovetail.answers.record.savings import SavingsAnswer
from dovetail.answers.record.trend import TrendAnswer
from dovetail.answers.replay.replaying import FlightsAnswer, ReplayAnswer
from dovetail.answers.shadow.comparing import ShadowReport
from dovetail.answers.shown.documents import API_VERSION, MOMENTS, camel
from dovetail.answers.status.answer import NodesAnswer, StatusAnswer
from dovetail.answers.status.nodes import PodsAnswer

FOLDER: Final = f"schemas/{API_VERSION.partition('/')[2]}"
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """One kind of document. `says`: what prints it; `besides`: what is added to the class; `partial`: where nobody
    answers, what is known is printed without the rest."""

    answer: type
    says: str
    besides: Mapping[str, Any] | None = None
    partial: bool = False


# Documents that are made by `document`: names in camelCase, moments in RFC 3339.
DOCUMENTS: Final[Mapping[str, Printed]] = {
    "ClusterStatus": Printed(
        answer=StatusAnswer,
        says="dovetail status",
        besides={"workers": {"type": ["integer", "null"]}, "workflows": {"type": "string"}},
    ),
    "Fleet": Printed(answer=FleetAnswer, says="dovetail fleet"),
    "NodeList": Printed(
        answer=NodesAnswer,
        says="dovetail nodes",
        besides={"notes": {"type": "array", "items": {"type": "string"}}},  # where it was looked from here
    ),
    "PendingPodList": Printed(answer=PodsAnswer, says="the API's pods"),
    "Trend": Printed(answer=TrendAnswer, says="the API's trend"),
    "Plan": Printed(answer=PlanAnswer, says="dovetail plan"),
    "NodeExplanation": Printed(answer=NodeAnswer, says="dovetail explain node"),
    "PodExplanation": Printed(answer=PodAnswer, says="dovetail explain pod"),
    "History": Printed(answer=HistoryAnswer, says="dovetail history"),
    "Checks": Printed(answer=DoctorAnswer, says="the API's doctor"),
    "Names": Printed(answer=NamesAnswer, says="the API's names"),
    "Versions": Printed(
        answer=VersionsAnswer,
        says="dovetail version",
        besides={"client": {"type": "string"}, "trouble": {"type": "string"}},
        partial=True,
    ),
    "FlightList": Printed(answer=FlightsAnswer, says="dovetail replay"),
    "Replay": Printed(answer=ReplayAnswer, says="dovetail replay DECISION"),
    "ShadowReport": Printed(answer=ShadowReport, says="dovetail shadow report"),
    "PlannedChange": Printed(answer=ChangeAnswer, says="dovetail plan -f"),
    "Forecast": Printed(answer=ForecastAnswer, says="dovetail forecast"),
    "Log": Printed(answer=LogAnswer, says="dovetail log"),
    "Savings": Printed(answer=SavingsAnswer, says="dovetail savings"),
}

_PLAIN: Final[Mapping[Any, Schema]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    type(None): {"type": "null"},
    Any: {},
    object: {},
}


def schemas() -> dict[str, Schema]:
    """By kind."""
    made = {kind: _Schemas().whole(kind, printed) for kind, printed in DOCUMENTS.items()}
    message = {"message": {"type": "string"}}
    made["Error"] = _head("Error", "the API, where it has no answer", message, ["apiVersion", "kind", "message"])
    return made


def schema_files() -> dict[str, str]:
    """Path below docs/reference, and text."""
    return {f"{FOLDER}/{kind}.json": f"{json.dumps(found, indent=2)}\n" for kind, found in sorted(schemas().items())}


def _head(kind: str, says: str, properties: Schema, required: list[str]) -> Schema:
    return {
        "$schema": DIALECT,
        "$id": f"urn:{API_VERSION.replace('/', ':')}:{kind}",
        "title": kind,
        "description": f"What {says} answers",
        "type": "object",
        "required": required,
        "properties": {"apiVersion": {"const": API_VERSION}, "kind": {"const": kind}, **properties},
    }


# Of a worker's answer that was begun more than five seconds before it was sent.
_AS_OF: Final[Schema] = {"asOf": {"type": "string", "format": "date-time"}}


class _Schemas:
    """The schemas of one document."""

    def __init__(self) -> None:
        self.parts: dict[str, Schema] = {}

    def whole(self, kind: str, printed: Printed) -> Schema:
        """The document with the classes that it is made of."""
        body = self._object(printed.answer)
        properties = {"cluster": {"type": "string"}, **body["properties"], **(printed.besides or {}), **_AS_OF}
        always = ["apiVersion", "kind"]
        required = always if printed.partial else list(dict.fromkeys([*always, "cluster", *body["required"]]))
        return {**_head(kind, printed.says, properties, required), "$defs": dict(sorted(self.parts.items()))}

    def _object(self, answer: type) -> Schema:
        hints = get_type_hints(answer)
        shown = [each for each in fields(answer) if each.init or each.default is not MISSING]
        properties = {camel(each.name): self._field(each.name, hints[each.name]) for each in shown}
        return {"type": "object", "required": list(properties), "properties": properties}

    def _field(self, name: str, hint: Any) -> Schema:
        if name not in MOMENTS:
            return self._of(hint)
        parts = get_args(hint) or (hint,)
        moment: Schema = {"type": "string", "format": "date-time"}
        if float not in parts:
            return self._of(hint)
        return {"anyOf": [moment, {"type": "null"}]} if type(None) in parts else moment

    def _of(self, hint: Any) -> Schema:
        if hint in _PLAIN:
            return dict(_PLAIN[hint])
        origin, parts = get_origin(hint), get_args(hint)
        if origin in (Union, types.UnionType):
            return {"anyOf": [self._of(part) for part in parts]}
        if origin is Literal:
            return {"enum": list(parts)}
        if origin is tuple and len(parts) == 2 and parts[1] is Ellipsis:
            return {"type": "array", "items": self._of(parts[0])}
        if origin is tuple:
            return {"type": "array", "prefixItems": [self._of(part) for part in parts], "items": False}
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return {"type": "object", "additionalProperties": self._of(parts[1])}
        return self._class(hint)

    def _class(self, hint: Any) -> Schema:
        if isinstance(hint, type) and issubclass(hint, Enum):
            return {"enum": [member.value for member in hint]}
        if not (isinstance(hint, type) and is_dataclass(hint)):
            raise TypeError(f"{hint}: no schema is known for it")
        if hint.__name__ not in self.parts:
            self.parts[hint.__name__] = {}
            self.parts[hint.__name__] = self._object(hint)
        return {"$ref": f"#/$defs/{hint.__name__}"}
