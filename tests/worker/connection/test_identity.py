"""A worker's name says product, version, process and pod, and a later worker reads the place from it."""

import os
import socket

import pytest

from dovetail.connection.identity import Place, own_identity, place_of
from dovetail.telemetry.log.start import product_version


def test_the_name_has_version_and_pod() -> None:
    assert own_identity("dovetail-6b7") == f"dovetail/{product_version()}/{os.getpid()}@dovetail-6b7"
    assert own_identity().endswith(f"@{socket.gethostname()}")


def test_the_place_is_read_from_our_name_and_from_the_first_version_s() -> None:
    assert place_of(own_identity("a-pod")) == Place(number=os.getpid(), host="a-pod", version=product_version())
    assert place_of("17@a-pod") == Place(number=17, host="a-pod")


@pytest.mark.parametrize("identity", ["", "worker", "@", "x@host", "temporal-cli:root@host", "dovetail/1/x@host"])
def test_another_form_says_nothing(identity: str) -> None:
    assert place_of(identity) is None
