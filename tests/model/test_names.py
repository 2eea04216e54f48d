"""How many names of its own the product has on objects: each is one more thing to know, to guard and to keep."""

import re

from tests.test_architecture import product_files

OWN = re.compile(r'"((?:[a-z-]+\.hook\.)?dovetail\.sh/[a-z-]*)"')
NEVER_KEPT = {
    "dovetail.sh/claim-uid",  # a tag of instances
    "dovetail.sh/launch-group",  # likewise
    "dovetail.sh/may-not",  # of dry runs that must be refused
}


def test_own_names_on_objects_stay_few() -> None:
    """Those of the test clouds (embedded, kwok) begin otherwise. What we remember is folded into few of them (decision
    316); what only 0.1.0 wrote is read for one release."""
    files = [file for file in product_files() if file.name != "before_0_2.py"]
    own = {name for file in files for name in OWN.findall(file.read_text())} - NEVER_KEPT

    assert len(own) <= 40, sorted(own)
