"""The header that says which cluster a workflow, and every step and child that it asks for, belongs to.

Names of clusters repeat; the UID of the namespace kube-system does not. The header travels beside the input, so no
input has to carry it and no call can forget it.
"""

from collections.abc import Mapping
from typing import Final

from temporalio.api.common.v1 import Payload

HEADER: Final = "dovetail-cluster-uid"

Headers = Mapping[str, Payload]


def header_of(cluster_uid: str) -> Payload:
    """The header as it is sent. Never encrypted: it must be readable without the codec's key."""
    return Payload(metadata={"encoding": b"json/plain"}, data=f'"{cluster_uid}"'.encode())


def with_header(headers: Headers, cluster_uid: str) -> Headers:
    """These headers and the cluster's, where it is known."""
    return {**headers, HEADER: header_of(cluster_uid)} if cluster_uid else headers


def cluster_uid_in(headers: Headers) -> str:
    """The cluster that the headers name; empty where they name none."""
    found = headers.get(HEADER)
    return "" if found is None else found.data.decode(errors="replace").strip('"')
