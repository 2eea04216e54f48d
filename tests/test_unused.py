"""Every function, method, class and constant of the product is used by the product: what only tests call says nothing
of what runs."""

from functools import cache
from pathlib import Path

from dovetail.answers.questions.table import QUESTIONS
from dovetail.settings.providers import PROVIDERS
from tests.picture import ROOT
from tests.test_architecture import product_files
from tests.unused import Key, Product, needless_defaults


def _asked(function: str) -> Key:
    """What the table of questions names."""
    module, _, name = function.partition(".")
    return f"dovetail.answers.questions.{module}", name


# Where the product is entered from outside.
ROOTS: list[Key] = [
    ("dovetail.cli.main", "run"),  # `dovetail`
    ("dovetail.cli.main", "run_plugin"),  # `kubectl dovetail`
    ("dovetail.codecs.aes_gcm", "from_folder"),  # the value of a setting
    *((module, "PROVIDER") for module in PROVIDERS.values()),
    *(_asked(place.function) for place in QUESTIONS.values()),
]


@cache
def product() -> Product:
    """As it is read once: nothing of it changes by being asked."""
    return Product(_sources())


def _sources() -> dict[str, Path]:
    found = {}
    for file in product_files():
        parts = file.relative_to(ROOT).with_suffix("").parts
        parts = parts if parts[0] == "dovetail" else ("dovetail", *parts)
        found[".".join(parts).removesuffix(".__init__")] = file
    return found


def test_the_product_uses_all_that_it_defines() -> None:
    assert product().unreached(ROOTS) == set()


PLANTED = """
from elsewhere import Base, register

USED, _UNUSED = 1, 2

def helper(): return helper()
def alone(): return helper()
def used(helper): return helper

@register
class Kept(Base):
    def called_by_the_base(self): return used(USED)

class Plain:
    def __enter__(self): return self
    def asked(self): return self.by_name
    def unasked(self): return self.unasked()

def start(x: "Typed"): return Plain().asked, getattr(x, "by_name"), Kept

class Typed:
    def by_name(self): ...
    def other(self): ...
"""


def test_what_nobody_reaches_is_found(tmp_path: Path) -> None:
    """A function that calls itself, what only such a function calls, a method beside one that is asked for."""
    file = tmp_path / "planted.py"
    file.write_text(PLANTED)
    unused = ("Plain.unasked", "Typed.other", "_UNUSED", "alone", "helper")
    assert Product({"planted": file}).unreached([("planted", "start")]) == {("planted", name) for name in unused}


def _is_collaborator(module: str, name: str) -> bool:
    """What the steps, and the adapters, are made from, where that is a record."""
    return name.endswith("Ports") or f"{module}.{name}" in _COLLABORATORS


_COLLABORATORS = {
    "dovetail.activities.provisioning.await_provisioning_plan.ProvisioningSettings",
    "dovetail.activities.provisioning.create_node_claims.CreateTies",
    "dovetail.activities.shared.looks.flights.DecisionFollowers",
    "dovetail.activities.shared.looks.live_pauses.LivePauses",
    "dovetail.adapters.aws.upkeep.node_classes.ClusterNow",
    "dovetail.telemetry.metrics.scrape.Scrape",
    "dovetail.wiring.world.World",
    "dovetail.worker.self_watch.SelfWatch",
    "dovetail.worker.steps.Wiring",
}


def test_what_a_class_always_gets_it_cannot_be_made_without() -> None:
    """A line that is missing where things are made would else take a rule away, and no check of types would say so."""
    assert needless_defaults(product(), _is_collaborator) == set()


COLLABORATORS = """
class Alone:
    def __init__(self, given, other=None, *, now=None): ...

class Ports:
    given: int
    other: int = 0

Alone(1, 2)
Alone(1, other=2, now=3)
Ports(1, 2)
"""


def test_what_every_call_gives_is_found(tmp_path: Path) -> None:
    file = tmp_path / "planted.py"
    file.write_text(COLLABORATORS)
    product = Product({"planted": file})
    assert needless_defaults(product, lambda *_: False) == {("planted", "Alone", "other")}
    assert needless_defaults(product, lambda *_: True) == {("planted", "Alone", "other"), ("planted", "Ports", "other")}
