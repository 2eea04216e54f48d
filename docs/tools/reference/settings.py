"""The page of settings: variable, flag, default and what it does, from the models that read them."""

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic_core import PydanticUndefined

from docs.tools.reference.tables import code, table
from dovetail.settings.flags import flag_of, words_of
from dovetail.settings.providers import PROVIDERS, provider_named
from dovetail.settings.settings import Settings
from dovetail.settings.without_effect import GATES_WITHOUT_EFFECT, WITHOUT_EFFECT
from dovetail.worker.start_report import shown

HEAD = ("variable", "flag", "default", "what it does")
SECONDS = ("DURATION", "INTERVAL", "LIMIT", "SECONDS")
KARPENTERS = frozenset(
    [
        "BATCH_IDLE_DURATION",
        "BATCH_MAX_DURATION",
        "CLUSTER_CA_BUNDLE",
        "CLUSTER_ENDPOINT",
        "CLUSTER_NAME",
        "LEADER_ELECTION_NAMESPACE",
        "SYSTEM_NAMESPACE",
        "DISABLE_CLUSTER_STATE_OBSERVABILITY",
        "FEATURE_GATES",
        "HEALTH_PROBE_PORT",
        "KUBECONFIG",
        "LOG_LEVEL",
        "METRICS_PORT",
        "MIN_VALUES_POLICY",
        "PREFERENCE_POLICY",
        "SCHEDULER_CONFIG",
    ]
)


def settings_page() -> str:
    """The whole page."""
    own = [row for row in _rows(Settings) if _variable(row) in KARPENTERS]
    ours = [row for row in _rows(Settings) if _variable(row) not in KARPENTERS]
    clouds = [_of_cloud(name) for name in PROVIDERS]
    return f"""# Settings

Environment variables of the worker, each a flag of `dovetail worker` too; a flag wins. Names and defaults are
Karpenter's where
Karpenter has the setting, so the values of its chart carry over. An empty variable is not set. A value that cannot
be read ends the
start with one line that names the variable (exit code 1). At its start a worker logs the settings in effect, none of
them cut, and names
gates that do not exist and variables that have no effect here.

The commands (`dovetail status`, `plan`, …) read the same variables.

## As Karpenter's

{table(HEAD, own)}

{"".join(clouds)}
## Dovetail's own

{table(HEAD, ours)}

The link to Temporal is set by Temporal's own variables (`TEMPORAL_ADDRESS`, `TEMPORAL_NAMESPACE`, `TEMPORAL_TLS_…`,
`TEMPORAL_API_KEY`, …): [Temporal](../temporal.md).

## Karpenter's without effect here

They are taken, as variables and as flags, so that a Deployment made for Karpenter starts. A worker names each that
is set, once, with
this reason; as a warning where the value asks for something that is not done.

{table(("variable", "flag", "why"), _without_effect())}

So are these gates of `FEATURE_GATES` and `AWS_FEATURE_GATES`:

{table(("gate", "why"), ((code(gate), why) for gate, why in GATES_WITHOUT_EFFECT.items()))}
"""


def _of_cloud(name: str) -> str:
    rows = list(_rows(provider_named(name).settings))
    return f"## Of the cloud `{name}`\n\n{table(HEAD, rows)}\n\n"


def _rows(model: Any) -> Iterator[tuple[str, str, str, str]]:
    words = words_of(model)
    for field in model.model_fields.values():
        if field.alias:
            does = words[field.alias]
            yield (
                code(field.alias),
                code(flag_of(field.alias)),
                _default(field),
                does + _choices(field.annotation, does),
            )


def _variable(row: tuple[str, str, str, str]) -> str:
    return row[0].strip("`")


def _default(field: Any) -> str:
    value = field.get_default(call_default_factory=not _needs_data(field))
    if value is PydanticUndefined:
        return ""
    if isinstance(value, float) and str(field.alias).endswith(SECONDS):
        return code(_duration(value))
    return code(shown(value).replace(",", ", "))


def _needs_data(field: Any) -> bool:
    return bool(field.default_factory_takes_validated_data)


def _duration(seconds: float) -> str:
    return f"{seconds / 60:g}m" if seconds >= 60 and seconds % 60 == 0 else f"{seconds:g}s"


def _choices(annotation: Any, does: str) -> str:
    """The values that there are, unless the words name them all."""
    if get_origin(annotation) is not Literal:
        return ""
    named = [code(str(choice)) for choice in get_args(annotation)]
    return "" if all(choice in does for choice in named) else f" ({' or '.join(named)})"


def _without_effect() -> Iterator[tuple[str, str, str]]:
    for one in WITHOUT_EFFECT:
        yield code(one.variable), code(flag_of(one.variable)), one.reason
