"""`dovetail status` says what a NodePool with a fixed number of nodes has not got (NPL-43)."""

from dataclasses import replace
from pathlib import Path

import pytest

from dovetail.answers.status.status import status_of
from tests.cli.worlds import a_ready_pool, a_world, looked


@pytest.mark.parametrize("gate", [True, False])
async def test_status_says_how_many_nodes_a_static_pool_lacks_where_it_is_filled(tmp_path: Path, gate: bool) -> None:
    look = await looked(a_world(tmp_path, a_ready_pool("fixed", replicas=3), a_ready_pool("dynamic")))
    settings = look.settings.model_copy(update={"gates": {**look.settings.gates, "StaticCapacity": gate}})

    said = [note for note in status_of(replace(look, settings=settings)).notes if "missing" in note]

    assert [note[: note.index(";")] for note in said] == ["NodePool fixed: 3 of its 3 nodes are missing"] * gate
