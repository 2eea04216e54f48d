"""Is there a cheaper answer for the pods of a finished pass?

The pass is read as arrays, cheaper nodes are looked for, and a second pass carries the proposal out by every rule of
the first. It is taken if it places the same pods and costs less; so an answer is always there, and never worse than
Karpenter's.
"""

from collections.abc import Callable
from math import ceil

from dovetail.model.judging import Unjudged
from dovetail.placement.cost.compiling import Compiler
from dovetail.placement.cost.guided import Guide
from dovetail.placement.cost.policy import node_costs
from dovetail.placement.cost.prices import DraftPrices
from dovetail.placement.cost.search import Search
from dovetail.placement.cost.target import targets_of
from dovetail.placement.search.solve import Pass

_LEAST_GAIN = 1e-6
_LEAST_TIME = 0.2  # of the time for a thousand pods, for a few: they wait for it, and there is little to find
_TASTE = 2.0  # in average pods: for so much more per node the search looks, so that it finds few at nearly equal cost
_ROUNDS = 3  # proposals that are carried out, each beginning with what became of the one before


def with_cheaper_nodes(run: Pass) -> Pass:
    """The pass, or another one over the same pods whose new nodes cost less."""
    index = run.index
    settings = index.settings.cost
    costs = node_costs(index.templates, settings, index.aside)
    if not costs or not run.complete or not any(draft.template.number in costs for draft in run.drafts.made):
        return run
    pool = next(template.pool for template in index.templates if template.number in costs)
    found = index.aside.judge(pool, "search for cheaper nodes", _cheaper, run, costs)
    return run if isinstance(found, Unjudged) else found  # an answer is there, whatever the search makes of the input


def _cheaper(run: Pass, costs: dict[int, float]) -> Pass:
    settings = run.index.settings.cost
    pods = sum(len(draft.pods) for draft in run.drafts.made)
    thousands = ceil(pods / 1000)
    rings = settings.stopwatch(settings.seconds * thousands * min(1.0, _LEAST_TIME + pods / 500))
    prices = DraftPrices(costs)
    best, lowest = run, prices.total(run)
    taste = _TASTE * lowest / max(pods, 1)
    looked_for = {template: cost + taste for template, cost in costs.items()}
    for number in range(_ROUNDS):
        proposal = _proposal(best, looked_for, _Ending(run, rings, settings.steps * thousands // _ROUNDS), number)
        if proposal is None:
            break
        if _places_all(proposal, run):
            cost = prices.total(proposal)
            if cost < lowest - _LEAST_GAIN:
                best, lowest = proposal, cost
        if rings():
            break
    return best


class _Ending:
    """When a search is over: after so many steps, when its time is up, or when the decision is to end."""

    def __init__(self, run: Pass, rings: Callable[[], bool], steps: int) -> None:
        self._should_stop = run.options.should_stop
        self._rings = rings
        self.steps = steps

    def __call__(self) -> bool:
        return self._rings() or (self._should_stop is not None and self._should_stop())


def _proposal(run: Pass, costs: dict[int, float], ending: _Ending, number: int) -> Pass | None:
    compiled = Compiler(run, costs, deals=not number).compile()
    if compiled is None:
        return None
    settings = run.index.settings.cost
    search = Search(compiled.problem, settings.seed + number)
    if number:
        search.begin_with(*compiled.bins(search.filler), ending)
    else:
        search.start(ending)
    search.improve(ending, ending.steps)
    targets = targets_of(compiled, search.bins, settings.room, settings.types)
    return Guide(run, targets, compiled.undecided(), compiled.dealt).carry_out()


def _places_all(run: Pass, before: Pass) -> bool:
    """Whether every pod that had a place has one, and none was left out for want of time."""
    return run.complete and set(run.refused) <= set(before.refused)
