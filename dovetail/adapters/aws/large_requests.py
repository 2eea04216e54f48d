"""The body of a call with hundreds of similar entries, written once and quickly.

A fleet has some 240 overrides of five fields. The SDK walks its description of the service for each field, then quotes
the form twice, once for the signature and once to send it: two thirds of a launch's processor time. Here the entries
are taken out before the SDK sees them, and are written after its own fields. Field names on the wire may differ from
those in the call, so a test compares the bytes with the SDK's.
"""

import re
from typing import Any, Final
from urllib.parse import quote_plus

from dovetail.model.values.json import Json

ENTRIES: Final = {"CreateFleet": "LaunchTemplateConfigs"}

_KEPT: Final = "dovetail_entries"
_PLAIN: Final = re.compile(r"[A-Za-z0-9._~-]*")


def speed_up(client: Any) -> None:
    """Let this module write the forms of a client's large calls."""
    for operation in ENTRIES:
        client.meta.events.register(f"provide-client-params.ec2.{operation}", take_out)
        client.meta.events.register(f"before-call.ec2.{operation}", write_form)


def take_out(params: Json, model: Any, context: Json, **_: Any) -> Json:
    """The parameters without the entries, which are kept in the call's context."""
    field = ENTRIES[model.name]
    context[_KEPT] = (field, params.get(field, []))
    return {key: value for key, value in params.items() if key != field}


def write_form(params: Json, context: Json, **_: Any) -> None:
    """The body as sent. Field names need no quoting; values repeat, so each is quoted once."""
    quoted = _Quoted()
    rows = [f"{key}={quoted[str(value)]}" for key, value in params["body"].items()]
    _write(rows, quoted, *context[_KEPT])
    params["body"] = "&".join(rows).encode()


def _write(rows: list[str], quoted: "_Quoted", name: str, value: Any) -> None:
    """A thousand rows per launch: leaves are written as they are reached."""
    fields = value.items() if isinstance(value, dict) else enumerate(value, 1)
    for key, each in fields:
        if isinstance(each, str):
            rows.append(f"{name}.{key}={quoted[each]}")
        elif isinstance(each, (dict, list)):
            _write(rows, quoted, f"{name}.{key}", each)
        else:
            rows.append(f"{name}.{key}={quoted[str(each)]}")


class _Quoted(dict[str, str]):
    """Texts, quoted for a form."""

    def __missing__(self, text: str) -> str:
        made = self[text] = text if _PLAIN.fullmatch(text) else quote_plus(text, safe="-._~")
        return made
