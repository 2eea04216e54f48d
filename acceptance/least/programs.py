"""Linear and whole-number programs, solved by HiGHS."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import highspy
import numpy as np

from acceptance.least.reading import Floats, Integers

_CLOSE = 1e-3  # how near to the best a whole-number program is solved


@dataclass(frozen=True)
class Entries:
    """The entries of a matrix that are not zero: in which row and column, and what."""

    row: Integers
    column: Integers
    value: Floats

    @classmethod
    def of(cls, matrix: Floats) -> "Entries":
        """Those of a whole matrix."""
        row, column = np.nonzero(matrix)
        return cls(row, column, matrix[row, column])


@dataclass(frozen=True, kw_only=True)
class Program:
    """Find amounts, from none to as many as may be, for which `cost` is least and each row is within its limits."""

    cost: Floats
    upper: Floats
    rows: Entries
    low: Floats
    high: Floats


@dataclass(frozen=True)
class Solved:
    """The amounts, what a unit of each row is worth, and what no other amounts can undercut."""

    amounts: Floats
    worth: Floats
    least: float


class NotSolved(Exception):
    """The solver has not come to an end."""


def solve(program: Program, *, whole: bool = False, seconds: float = 60.0) -> Solved:
    """The best amounts, all whole ones if asked."""
    model = highspy.HighsLp()
    columns = len(program.cost)
    model.num_col_, model.num_row_ = columns, len(program.low)
    model.col_cost_, model.col_lower_, model.col_upper_ = program.cost, np.zeros(columns), program.upper
    model.row_lower_, model.row_upper_ = program.low, program.high
    entries, order = program.rows, np.argsort(program.rows.column, kind="stable")
    ends = np.cumsum(np.bincount(entries.column, minlength=columns))
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = np.concatenate([[0], ends]).astype(np.int32)
    model.a_matrix_.index_ = entries.row[order].astype(np.int32)
    model.a_matrix_.value_ = entries.value[order]
    if whole:
        model.integrality_ = [highspy.HighsVarType.kInteger] * columns
    with _greeting_on_standard_error():
        solver = highspy.Highs()
    # A number of threads that differs from an earlier solver's of this process makes the run fail.
    for option, value in (("output_flag", False), ("threads", 1), ("time_limit", seconds), ("mip_rel_gap", _CLOSE)):
        solver.setOptionValue(option, value)
    solver.passModel(model)
    solver.run()
    info, status, found = solver.getInfo(), solver.getModelStatus(), solver.getSolution()
    ended = status in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kTimeLimit)
    if not ended or (status != highspy.HighsModelStatus.kOptimal and not whole):
        raise NotSolved(solver.modelStatusToString(status))
    least = info.mip_dual_bound if whole else info.objective_function_value
    return Solved(np.array(found.col_value), np.array(found.row_dual), float(least))


@contextmanager
def _greeting_on_standard_error() -> Iterator[None]:
    """A new solver prints who made it, past all its options; standard output is for the answer alone."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        ctypes.CDLL(None).fflush(None)
        os.dup2(kept, 1)
        os.close(kept)
