"""User data by what it says, not by its spelling: MIME parts, TOML and YAML by content, scripts by their arguments.

Every launch template of both sides is read so (rule 9 of the recording's README). What cannot be read is compared as
text, line by line.
"""

import email
import re
import shlex
import tomllib
from typing import Any, Final

import yaml

from dovetail.model.values.json import Json

_LABELS: Final = re.compile(r"^--node-labels=(.*)$", re.DOTALL)
_SCRIPTS: Final = ("/etc/eks/bootstrap.sh", "Start-EKSBootstrap.ps1", "EKSBootstrapScriptFile")


def parsed(text: str) -> Any:
    """A structure to compare."""
    stripped = text.strip()
    if stripped.startswith("MIME-Version"):
        return {"mime": [_part(each) for each in _parts(stripped)]}
    if "<powershell>" in stripped or _SCRIPTS[0] in stripped:
        return {"script": _lines(stripped)}
    try:
        return {"toml": tomllib.loads(text)}
    except tomllib.TOMLDecodeError:
        return {"text": stripped.splitlines()}


def _parts(text: str) -> list[tuple[str, str]]:
    message = email.message_from_string(text)
    return [(part.get_content_type(), str(part.get_payload())) for part in message.walk() if not part.is_multipart()]


def _part(part: tuple[str, str]) -> Json:
    kind, body = part
    if kind == "application/node.eks.aws":
        try:
            found = yaml.safe_load(body)
        except yaml.YAMLError:
            found = body
        return {"type": kind, "config": _node_config(found)}
    return {"type": kind, "lines": _lines(body)}


def _node_config(found: Any) -> Any:
    """The flag of labels is a list of its own."""
    if not isinstance(found, dict):
        return found
    kubelet = ((found.get("spec") or {}).get("kubelet")) or {}
    if kubelet.get("flags"):
        kubelet["flags"] = [_flag(each) for each in kubelet["flags"]]
    return found


def _flag(text: Any) -> Any:
    labels = _LABELS.match(str(text))
    return {"node-labels": dict.fromkeys(labels.group(1).strip('"').split(","), True)} if labels else text


def _lines(text: str) -> list[Any]:
    """A bootstrap call as its arguments, everything else as it is."""
    lines = [line.rstrip() for line in text.strip().replace("\\\n", " ").splitlines()]
    return [_arguments(line) if any(name in line for name in _SCRIPTS) else line for line in lines if line]


def _arguments(line: str) -> Any:
    try:
        words = shlex.split(line)
    except ValueError:
        return line
    flags: Json = {}
    name = "call"
    for word in words:
        if re.match(r"^--?[A-Za-z]", word) and "=" not in word:
            name = word
            flags.setdefault(name, [])
        else:
            flags.setdefault(name, []).append(_kubelet_arguments(word) if "--" in word else word)
    return flags


def _kubelet_arguments(text: str) -> Json:
    found: Json = {}
    for word in text.split():
        name, _, value = word.partition("=")
        found[name] = dict.fromkeys(value.strip('"').split(","), True) if "," in value else value.strip('"')
    return found


_OF_A_TYPE: Final = frozenset(
    {"maxPods", "max-pods", "--max-pods", "kubeReserved", "systemReserved", "kube-reserved", "system-reserved"}
)


def of_no_type(found: Any) -> Any:
    """The same without what follows from the instance type, which validation takes at random.

    Reserved resources do where the class computes them; where it states them they are compared at the launch.
    """
    if isinstance(found, dict):
        return {key: of_no_type(value) for key, value in found.items() if key not in _OF_A_TYPE}
    if isinstance(found, list):
        return [of_no_type(each) for each in found]
    return found
