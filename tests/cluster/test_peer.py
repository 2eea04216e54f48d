"""Karpenter's own regression suite against a worker whose cloud is kwok: what `make peer` runs, spec by spec."""

from pathlib import Path

import pytest

from testbed.peer.__main__ import LANES, all_specs, run
from testbed.peer.specs import Outcome
from testbed.peer.table import Reasons
from testbed.plane import TestbedUnavailable
from testbed.plane.binaries import built_alone
from testbed.plane.building import PEER
from tests.unavailable import no_control_plane

pytestmark = [pytest.mark.cluster, pytest.mark.soak]


async def test_every_spec_passes_or_is_named_with_the_reason_that_it_cannot_apply(tmp_path: Path) -> None:
    try:
        program = built_alone(PEER, print)
    except TestbedUnavailable as reason:
        no_control_plane(reason)
    specs, reasons = all_specs(program, tmp_path), Reasons.read()
    assert reasons.specs.keys() <= set(specs)

    outcomes = list[Outcome]()

    await run(program, tmp_path, [spec for spec in specs if spec not in reasons.specs], LANES, outcomes.append)

    assert {each.spec: each.why for each in outcomes if not each.passed} == {}
