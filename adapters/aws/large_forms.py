"""The body of a call with hundreds of like entries, written once and quickly.

Asked by the clients of such calls. A fleet has some 240 overrides of five fields. The SDK walks its description of the
service for each field, then quotes the form twice, once for the signature and once to send it: two thirds of a launch's
processor time. Here the entries are taken out before the SDK sees them, and are written behind its own fields. The trap
avoided: fields whose name on the line is another than in the call; a test compares the bytes with the SDK's.
"""

import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote_plus

Json = dict[str, Any]

ENTRIES: Final = {"CreateFleet": "LaunchTemplateConfigs"}

_KEPT: Final = "dovetail_entries"
_PLAIN: Final = re.compile(r"[A-Za-z0-9._~-]*")


def speed_up(client: Any) -> None:
    """Let this module write the forms of a client's large calls."""
    for operation in ENTRIES:
        client.meta.events.register(f"provide-client-params.ec2.{operation}", take_out)
        client.meta.events.register(f"before-call.ec2.{operation}", write_form)


def take_out(params: Json, model: Any, context: Json, **_: Any) -> Json:
    """The parameters without the entries, which wait in the call's context."""
    field = ENTRIES[model.name]
    context[_KEPT] = (field, params.get(field, []))
    return {key: value for key, value in params.items() if key != field}


def write_form(params: Json, context: Json, **_: Any) -> None:
    """The body as it goes over the line. Names of fields need no quoting; values repeat, so each is quoted once."""
    rows = [*((key, str(value)) for key, value in params["body"].items()), *_rows(*context[_KEPT])]
    quoted = {text: quote(text) for text in {text for _, text in rows}}
    params["body"] = "&".join([f"{key}={quoted[text]}" for key, text in rows]).encode()


def _rows(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from [(f"{name}.{key}", each)] if isinstance(each, str) else _rows(f"{name}.{key}", each)
    elif isinstance(value, list):
        for number, each in enumerate(value, 1):
            yield from _rows(f"{name}.{number}", each)
    else:
        yield name, str(value)


def quote(text: str) -> str:
    """As a form has it."""
    return text if _PLAIN.fullmatch(text) else quote_plus(text, safe="-._~")
