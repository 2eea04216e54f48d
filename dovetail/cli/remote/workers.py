"""The workers behind the API server: which Service leads to them, and what is wrong if none answers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlencode

from dovetail.answers.failures import CommandFailed
from dovetail.answers.shown.documents import Document
from dovetail.cli.output import NoWorkerAnswers
from dovetail.cli.remote.kubeconfig import Access, access
from dovetail.cli.remote.link import SECONDS, Link, Reply

NAMESPACES: Final = ("dovetail", "kube-system")  # in which the Service is looked for, in this order
SERVICE: Final = "dovetail"
PORTS: Final = ("http-api", "http-metrics")  # the second if a worker's questions have no port of their own
API: Final = "/api/v1/"
DIRECT: Final = ""  # no Service: the worker itself
# The Service leads to every worker, also to one that starts, ends or crashes at that moment, and the API server tries
# one of them, which it chooses by chance.
TRIES: Final = 5
UNREACHED: Final = "error trying to reach service"  # the API server's words for one that does not listen

_SERVICE: Final = re.compile(r"(?:([a-z0-9.-]+)/)?([a-z0-9.-]+)(?::([a-z0-9-]+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The cluster as given by a person; each field may be empty."""

    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""  # of the workers
    service: str = ""  # namespace/name:port
    url: str = ""  # of one worker, asked without an API server


class Workers:
    """The worker that the Service chooses."""

    def __init__(self, where: Where, seconds: float = SECONDS) -> None:
        self._services = (DIRECT,) if where.url else services_of(where)
        try:
            self.access = _direct(where.url) if where.url else access(where.kubeconfig, where.context)
        except CommandFailed as error:
            raise NoWorkerAnswers(str(error)) from None
        self._link = Link(self.access, seconds)

    @property
    def below(self) -> str:
        """The path before that of a question, known after the first answer."""
        return _below(self._services[0])

    def document(self, path: str, words: Mapping[str, str] | None = None) -> Document:
        """The answer of /api/v1/PATH as a document. `words`: the parameters."""
        import json

        query = f"?{urlencode(words)}" if words else ""
        found: Document = json.loads(self._asked(f"{path}{query}").text)
        return found

    def text(self, path: str, width: int | None, words: Mapping[str, str] | None = None) -> str:
        """The same as text of that width."""
        query = urlencode({"view": "text", **({"width": width} if width else {}), **(words or {})})
        return self._asked(f"{path}?{query}").text.rstrip("\n")

    def close(self) -> None:
        self._link.close()

    def _asked(self, path: str) -> Reply:
        left, refusals = self._services, list[str]()
        while left:
            try:
                reply = self._tried(f"{_below(left[0])}{path}")
            except NoWorkerAnswers:
                raise
            except CommandFailed as error:
                raise NoWorkerAnswers(str(error)) from None
            if reply.status == 200 or _is_of_worker(reply):
                self._services = left
                if reply.status != 200:
                    raise CommandFailed(reply.message)
                return reply
            refusals.append(_refusal(left[0], reply))
            left = _others(left, reply.status)
        raise NoWorkerAnswers("; ".join(dict.fromkeys(refusals)))

    def _tried(self, path: str) -> Reply:
        reply = self._link.get(path)
        for _ in range(TRIES - 1):
            if reply.status != 503 or UNREACHED not in reply.message:
                break
            reply = self._link.get(path)
        return reply


def _below(service: str) -> str:
    return API if service == DIRECT else f"{service}/proxy{API}"


def _others(services: tuple[str, ...], status: int) -> tuple[str, ...]:
    """Where else they may be: at another Service if there is no such one; else behind another of its ports, since it
    may lack the first (503, as if there were no worker), or a person may have a right only to the other."""
    place = services[0].rpartition(":")[0]
    return tuple(each for each in services[1:] if (each.rpartition(":")[0] == place) != (status == 404))


def _direct(url: str) -> Access:
    """A connection without credentials: anybody who can reach a worker may ask it."""
    if not url.startswith(("http://", "https://")):
        raise CommandFailed(f"--url {url}: it is written as http://HOST:PORT")
    return Access(server=url.rstrip("/"), namespace="")


def services_of(where: Where) -> tuple[str, ...]:
    """The paths of the Services that may be meant, likeliest first."""
    found = _SERVICE.fullmatch(where.service or SERVICE)
    if found is None:
        raise CommandFailed(f"--service {where.service}: it is written as NAMESPACE/NAME:PORT")
    namespace, name, port = found.groups()
    namespaces = (where.namespace,) if where.namespace else (namespace,) if namespace else NAMESPACES
    return tuple(
        f"/api/v1/namespaces/{quote(each, safe='')}/services/{name}:{chosen}"
        for each in namespaces
        for chosen in ((port,) if port else PORTS)
    )


def _is_of_worker(reply: Reply) -> bool:
    """Whether a worker has answered, and not the API server."""
    return '"dovetail.sh/' in reply.text[:200]


def _refusal(service: str, reply: Reply) -> str:
    if service == DIRECT:
        return f"--url: {reply.status}: {reply.message}: no worker's API is there"
    _, _, _, _, namespace, _, name = service.split("/")
    shown = f"Service {namespace}/{name.partition(':')[0]}"
    if reply.status == 401:
        return "the API server does not know you: log in again"
    if reply.status == 403:
        return f"you may not `get services/proxy` of {shown} (deploy/kubernetes/operators.yaml has the right)"
    if reply.status == 404:
        return f"{shown}: {reply.message or 'there is none'}"
    if reply.status == 503 and "no endpoints" in reply.message:
        return f"{shown}: no worker runs behind it"
    return f"{shown}: {reply.status}: {reply.message}"
