"""Is there a cheaper answer for the pods of a finished pass?

The pass is read as arrays, cheaper nodes are looked for, and a second pass carries the proposal out by every rule of
the first. It is taken if it places the same pods and costs less; so an answer is always there, and never worse than
Karpenter's.
"""

from collections.abc import Callable
from math import ceil

from dovetail.model.objects.judging import Unjudged
from dovetail.placement.cost.carrying_out.guided import Guide
from dovetail.placement.cost.carrying_out.promises import keeps_promises
from dovetail.placement.cost.carrying_out.target import targets_of
from dovetail.placement.cost.policy import node_costs
from dovetail.placement.cost.prices import DraftPrices
from dovetail.placement.cost.reading.compiling import Compiler
from dovetail.placement.cost.searching.search import Search
from dovetail.placement.search.solve import Pass

_LEAST_GAIN = 1e-6
_LEAST_TIME = 0.2  # of the time for a thousand pods, for a few: they wait for it, and there is little to find
_TASTE = 2.0  # in average pods: for so much more per node the search looks, so that it finds few at nearly equal cost
_MOST_TASTE = 0.05  # of an average node: few, large pods would make it a large part of the price
_BESIDE_OTHERS = 8.0  # times that, at most, for a few nodes that come beside some that stand
_SOME, _MANY = 20, 60  # nodes that stand: up to the first it is so, from the second on pods find gaps among them
_LATE = 0.7  # of the time: no further round is begun after it
_PATTERNS = 0.85  # of the time: patterns are looked for no longer in the first round
_ROUNDS = 3  # proposals that are carried out, each beginning with what became of the one before


def with_cheaper_nodes(run: Pass) -> Pass:
    """The pass, or another one over the same pods whose new nodes cost less."""
    index = run.index
    settings = index.settings.cost
    costs = node_costs(index.templates, settings, index.judging)
    if not costs or not run.complete or not any(draft.template.number in costs for draft in run.drafts.made):
        return run
    pool = next(template.pool for template in index.templates if template.number in costs)
    found = index.judging.judge(pool, "search for cheaper nodes", _cheaper, run, costs)
    return run if isinstance(found, Unjudged) else found  # an answer is there, whatever the search makes of the input


def _cheaper(run: Pass, costs: dict[int, float]) -> Pass:
    settings = run.index.settings.cost
    pods = sum(len(draft.pods) for draft in run.drafts.made)
    thousands = ceil(pods / 1000)
    time = _Time(run, settings.seconds * thousands * min(1.0, _LEAST_TIME + pods / 500), settings.steps * thousands)
    prices = DraftPrices(costs, settings.spot_chance)
    best, (lowest, at_worst) = run, prices.total(run)
    taste = _liking(run, costs) * min(_TASTE / max(pods, 1), _MOST_TASTE / len(run.drafts.made)) * lowest
    looked_for = {template: cost + taste for template, cost in costs.items()}
    for number in range(_ROUNDS):
        proposal = _proposal(best, looked_for, time, number, best is run)
        if proposal is None:
            break
        if keeps_promises(proposal, run):
            cost, at_best = prices.total(proposal)
            if cost < lowest - _LEAST_GAIN and at_best < at_worst + _LEAST_GAIN:
                best, lowest = proposal, cost
        if time.is_short():
            break
    return best


def _liking(run: Pass, costs: dict[int, float]) -> float:
    """How much few nodes are liked: 1 where none or many stand, most where a few come beside some.

    Pods that come a few at a time would get nodes that just hold them, and leave a small cluster of small nodes, each
    with a gap that nothing fits into. Among many nodes some gap fits, and what comes in large batches fills its nodes
    by itself. Pods of Jobs leave by themselves, and small nodes are the sooner empty. (Decision record 280.)
    """
    pools = {template.pool.name for template in run.index.templates if template.number in costs}
    stand, come = sum(len(run.index.snapshot.claims_by_pool.get(pool, ())) for pool in pools), len(run.drafts.made)
    smallness = min(max((_MANY - stand) / (_MANY - _SOME), 0.0), 1.0)
    pods = [pod for draft in run.drafts.made for pod in draft.pods]
    staying = sum(all(owner.kind != "Job" for owner in pod.owners) for pod in pods) / max(len(pods), 1)
    return 1.0 + (_BESIDE_OTHERS - 1.0) * smallness * staying * stand / (stand + come)


class _Time:
    """How long is searched: until the time is up or the decision is to end, and for how long in each round.

    A round that begins with what became of the one before finds more than one that goes on. But each has to be read and
    carried out: where the first answer takes most of the time, there is one round alone.
    """

    def __init__(self, run: Pass, seconds: float, steps: int) -> None:
        """`steps`: of all rounds together, at most."""
        self.steps = steps // _ROUNDS  # of each
        stopwatch = run.index.settings.cost.stopwatch
        self._should_stop = run.options.should_stop
        self._rings = stopwatch(seconds)
        self._rings_late = stopwatch(_LATE * seconds)
        self._rings_for_patterns = stopwatch(_PATTERNS * seconds)
        self._ends = [stopwatch((number + 1) / _ROUNDS * seconds) for number in range(_ROUNDS)]

    def is_up(self) -> bool:
        return self._rings() or (self._should_stop is not None and self._should_stop())

    def is_short(self) -> bool:
        """Whether there is too little time left for another round."""
        return self._rings_late() or self.is_up()

    def of_round(self, number: int) -> Callable[[], bool]:
        """Whether the round that has its first answer now has searched long enough. One whose share is over by then
        has the rest of the time: another one would be read and carried out for little."""
        ends = self._ends[number]
        return self.is_up if self._rings_late() or ends() else lambda: ends() or self.is_up()

    def of_patterns(self, number: int) -> Callable[[], bool]:
        """Whether patterns have been looked for long enough in that round."""
        return self.of_round(number) if number else lambda: self._rings_for_patterns() or self.is_up()


def _proposal(run: Pass, costs: dict[int, float], time: _Time, number: int, begins: bool) -> Pass | None:
    """`begins`: the pass is Karpenter's own, whose nodes are no beginning and whose zones are dealt anew."""
    compiled = Compiler(run, costs, deals=begins).compile()
    if compiled is None:
        return None
    settings = run.index.settings.cost
    search = Search(compiled.problem, settings.seed + number)
    if begins:
        search.start(time.is_up)
    else:
        search.begin_with(*compiled.bins(search.filler), time.is_up)
    search.by_patterns(time.of_patterns(number))
    search.improve(time.of_round(number), time.steps)
    targets = targets_of(compiled, search.bins, settings.types)
    return Guide(run, targets, compiled.undecided(), compiled.dealt or not begins).carry_out()
