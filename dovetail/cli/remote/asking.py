"""The arguments of every command that asks a worker, and when it works without one."""

import argparse
import os
from typing import TYPE_CHECKING

from dovetail.answers.failures import CommandFailed
from dovetail.cli.output import NoWorkerAnswers, complain

if TYPE_CHECKING:
    from collections.abc import Callable

    from dovetail.cli.remote.workers import Where, Workers

    Remote = Callable[[argparse.Namespace, Workers], int | None]
    Unasked = Callable[[argparse.Namespace, str], int]


def add_place(command: argparse.ArgumentParser, *, namespace: bool = True) -> None:
    """Add the options for the cluster and its workers. Without `namespace`, -n is the command's own."""
    command.add_argument("--context", default="", help="the context of the kubeconfig (DOVETAIL_CONTEXT)")
    command.add_argument(
        "--service",
        default="",
        metavar="NAMESPACE/NAME:PORT",
        help="the workers' Service (DOVETAIL_SERVICE; default: dovetail:http-api in dovetail or kube-system)",
    )
    command.add_argument(
        "--url", default="", help="a worker's own address, http://HOST:PORT, asked without an API server (DOVETAIL_URL)"
    )
    if namespace:
        command.add_argument("-n", "--namespace", default="", help="the namespace of the workers' Service")
    command.add_argument(
        "--local", action="store_true", help="ask no worker: look from here, which needs a worker's settings"
    )


def where_of(given: argparse.Namespace) -> "Where":
    """The place from the arguments, then from the environment."""
    from dovetail.cli.remote.workers import Where

    named = getattr(given, "kubeconfig", None)
    return Where(
        kubeconfig=str(named) if named else os.environ.get("KUBECONFIG", ""),
        context=given.context or os.environ.get("DOVETAIL_CONTEXT", ""),
        namespace=getattr(given, "namespace", ""),
        service=given.service or os.environ.get("DOVETAIL_SERVICE", ""),
        url=url_of(given),
    )


def url_of(given: argparse.Namespace) -> str:
    """The address of a worker to ask directly; empty to go through the API server's proxy."""
    return getattr(given, "url", "") or os.environ.get("DOVETAIL_URL", "")


def looks_itself(given: argparse.Namespace) -> bool:
    """Whether no worker is asked: --local or --json, or a file to look at. A worker given by its address is asked even
    if the variables of an embedded world are set."""
    files = (getattr(given, "world", None), getattr(given, "snapshot", None))
    here = bool(given.local or getattr(given, "json", False) or any(files))
    return here or (bool(os.environ.get("DOVETAIL_WORLD")) and not url_of(given))


def asked(given: argparse.Namespace) -> int | None:
    """The exit code of a worker's answer; None if the command should work without one."""
    remote: Remote | None = getattr(given, "remote", None)
    if remote is None or looks_itself(given):
        return None
    from dovetail.cli.remote.workers import Workers

    try:
        workers = Workers(where_of(given))
        try:
            return remote(given, workers)
        finally:
            workers.close()
    except NoWorkerAnswers as error:
        if not (getattr(given, "cluster", None) or os.environ.get("CLUSTER_NAME")):
            unasked: Unasked | None = getattr(given, "unasked", None)  # for answers that have a part without workers
            if unasked is not None:
                return unasked(given, str(error))
            raise CommandFailed(f"no worker could be asked: {error}") from None
        complain(f"no worker could be asked ({error}); looking from here")
        return None
