"""What does an offering cost, and where is it (DIS-31)?

A candidate's price is that of the offering in its own zone and capacity type, available or not, and not the cheapest
price that happens to be compatible.
"""

from dovetail.model import names
from dovetail.model.pools import InstanceType, Offering


def value_of(offering: Offering, key: str) -> str:
    """The one value that an offering has for a label; empty without one."""
    for expression in offering.requirements:
        if expression.key == key and expression.values:
            return expression.values[0]
    return ""


def price_of(instance_type: InstanceType, zone: str, capacity_type: str) -> float | None:
    """The price of the first offering there; None without one."""
    for offering in instance_type.offerings:
        if value_of(offering, names.CAPACITY_TYPE) == capacity_type and value_of(offering, names.ZONE) == zone:
            return offering.price
    return None
