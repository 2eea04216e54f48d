"""Every setting as a flag of `dovetail worker`: `--batch-idle-duration 2s` for BATCH_IDLE_DURATION.

So the arguments of a Deployment made for Karpenter mean the same here. The name is the variable's in lower case,
without DOVETAIL_; a flag wins over the environment. Flags are removed before the command line is parsed, because their
names come from models that no other command needs to load.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from textwrap import fill, indent

from pydantic import BaseModel

from dovetail.settings.settings import SettingsError, settings_models
from dovetail.settings.without_effect import WITHOUT_EFFECT


def flag_of(variable: str) -> str:
    """`--batch-idle-duration` of BATCH_IDLE_DURATION."""
    return "--" + variable.removeprefix("DOVETAIL_").lower().replace("_", "-")


def known_flags() -> dict[str, tuple[str, bool]]:
    """The variable of each flag, and whether the flag may come without a value, which then is true."""
    found = {flag_of(one.variable): (one.variable, one.is_switch) for one in WITHOUT_EFFECT}
    for model in settings_models():
        for field in model.model_fields.values():
            if field.alias:
                found[flag_of(field.alias)] = (field.alias, field.annotation is bool)
    return found


def flags_of(words: Sequence[str]) -> dict[str, str]:
    """The settings that these words give, by variable; SettingsError names a word that is not a flag. Without words no
    cloud's library is loaded."""
    known = known_flags() if words else {}
    given: dict[str, str] = {}
    rest = list(words)
    while rest:
        flag, is_joined, value = rest.pop(0).partition("=")
        if flag not in known:
            raise SettingsError(f"{flag}: there is no such flag{_meant(flag, known)}")
        variable, is_switch = known[flag]
        if not is_joined:
            value = _next_value(flag, is_switch, rest)
        given[variable] = value
    return given


def settings_text() -> str:
    """Every setting with its flag and description, for the terminal."""
    paragraphs = []
    for model in settings_models():
        words = words_of(model)
        for field in model.model_fields.values():
            if field.alias:
                head = f"{flag_of(field.alias)}  ({field.alias})"
                paragraphs.append(f"{head}\n{indent(fill(words[field.alias], 100), '    ')}")
    return "\n".join(paragraphs)


def words_of(model: type[BaseModel]) -> dict[str, str]:
    """What stands below each field in the source, by variable."""
    from dovetail.api.schema.descriptions import descriptions  # only lists of settings read the source

    return {str(model.model_fields[name].alias): " ".join(text.split()) for name, text in descriptions(model).items()}


def _next_value(flag: str, is_switch: bool, rest: list[str]) -> str:
    if is_switch:
        return "true"  # as in Go: --flag alone, or --flag=false
    if not rest:
        raise SettingsError(f"{flag}: a value is missing")
    return rest.pop(0)


def _meant(flag: str, known: Iterable[str]) -> str:
    found = get_close_matches(flag, known, n=1)
    return f"; did you mean {found[0]}?" if found else ""
