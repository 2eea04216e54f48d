"""Tests of faults rely on the ledger: nothing in it is ever changed."""

import sqlite3

import pytest

from tests.adapters.simulator.conftest import Stage


@pytest.mark.parametrize("statement", ["UPDATE ledger SET outcome = 'ok'", "DELETE FROM ledger"])
def test_the_file_itself_refuses_to_change_the_ledger(stage: Stage, statement: str) -> None:
    before = stage.world.ledger()
    connection = sqlite3.connect(stage.file)

    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement)

    connection.close()
    assert stage.world.ledger() == before
