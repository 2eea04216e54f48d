"""All rows of the tables, in one list; case.py says how they are read."""

from tests.api.buffer_cases import BUFFER
from tests.api.claim_and_overlay_cases import CLAIM, OVERLAY
from tests.api.node_class_device_cases import DEVICE_CASES
from tests.api.node_class_selector_cases import SELECTOR_CASES
from tests.api.node_pool_cases import NODE_POOL
from tests.api.own_cases import OWN

CASES = [*NODE_POOL, *CLAIM, *OVERLAY, *SELECTOR_CASES, *DEVICE_CASES, *BUFFER, *OWN]
