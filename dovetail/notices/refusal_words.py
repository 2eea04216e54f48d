"""Why a pod finds no node, in the words of its Event (PLC-124, PLC-226).

The words are upstream's if it has any, because people search for them; `dovetail explain pod` says the same more
plainly. The names of the closed list do not work as words: `it_fits` means that no instance type fits.
"""

from collections.abc import Mapping
from typing import Final

from dovetail.model.places.placements import PoolRefusal, Reason, RefusedPod
from dovetail.model.values.resources import CPU, parse_quantity

_TYPO: Final = " (CPU request >= 1 Million, m vs M typo?)"
_SUSPICIOUS: Final = parse_quantity("1M", 10**9)

_CONSTRAINT: Final = "unsatisfiable topology constraint"

# The words before a conflict. For all other reasons the conflict itself says everything.
_WORDS: Final[Mapping[Reason, str]] = {
    "requirements": "incompatible requirements",
    "volume_requirements": "incompatible volume requirements",
    "topology_spread": _CONSTRAINT,
    "pod_affinity": _CONSTRAINT,
    "pod_anti_affinity": _CONSTRAINT,
    "host_ports": _CONSTRAINT,
    "it_requirements": "no instance type met all requirements",
    "it_fits": "no instance type has enough resources",
    "it_offering": "no instance type has the required offering",
    "it_requirements_fits": "no instance type met the scheduling requirements or had enough resources",
    "it_requirements_offering": "no instance type met the scheduling requirements or had a required offering",
    "it_fits_offering": "no instance type had enough resources or had a required offering",
    "it_requirements_fits_offering": (
        "no instance type met the scheduling requirements or had enough resources or had a required offering"
    ),
    "it_pair_requirements_fits": (
        "no instance type which met the scheduling requirements and had enough resources, had a required offering"
    ),
    "it_pair_requirements_offering": (
        "no instance type which met the scheduling requirements and the required offering had the required resources"
    ),
    "it_pair_fits_offering": (
        "no instance type which had enough resources and the required offering met the scheduling requirements"
    ),
    "not_judged": "the pod cannot be judged",
    "it_tuple": "no instance type met the requirements/resources/offering tuple",
}


def why(refused: RefusedPod) -> str:
    """Each pool's reason, in the order in which they were tried."""
    if not refused.pools:
        return "no dynamic nodepools found"
    return "; ".join(_of_pool(refused, pool) for pool in refused.pools)


def _of_pool(refused: RefusedPod, pool: PoolRefusal) -> str:
    words = ", ".join(filter(None, [_WORDS.get(pool.reason, ""), pool.conflict])) or pool.reason.replace("_", " ")
    if pool.reason == "it_fits" and refused.pod.requests.get(CPU, 0) >= _SUSPICIOUS:
        words += _TYPO
    return f'incompatible with nodepool "{pool.pool}", {words}' if pool.pool else words
