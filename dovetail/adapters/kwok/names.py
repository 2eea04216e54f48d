"""Names that the cloud kwok reads or writes: kwok's and Karpenter's own, and below them ours."""

from typing import Final

from dovetail.model import names

GROUP: Final = "karpenter.kwok.sh"
KIND: Final = "KWOKNodeClass"

SIZE: Final = f"{GROUP}/instance-size"
FAMILY: Final = f"{GROUP}/instance-family"
CPU: Final = f"{GROUP}/instance-cpu"
MEMORY: Final = f"{GROUP}/instance-memory"
TYPE_LABELS: Final = frozenset({SIZE, FAMILY, CPU, MEMORY})
# What of a Node's labels says of its instance.
INSTANCE_LABELS: Final = names.WELL_KNOWN_LABELS | TYPE_LABELS

# With this annotation the kwok controller plays a Node; the label finds the Nodes that are instances.
PLAYED: Final = "kwok.x-k8s.io/node"
FAKE: Final = "fake"
SCHEME: Final = "kwok://"

# On a KWOKNodeClass: what is sold out, as type/zone/capacity-type,… with * for any.
SOLD_OUT: Final = "kwok.dovetail.sh/sold-out"
# On a Node: what the cloud announces for its instance (interruptions.py).
INTERRUPT: Final = "kwok.dovetail.sh/interrupt"
ANNOUNCED: Final = "kwok.dovetail.sh/announced"  # the same, once it was taken up
# On a Node: the claim for which it was launched, and what for.
CLAIM: Final = "kwok.dovetail.sh/claim"
REQUEST: Final = "kwok.dovetail.sh/request"
CLASS_HASH: Final = "kwok.dovetail.sh/class-hash"
# On a Node: when its instance has booted, or has ended.
BOOTS_AT: Final = "kwok.dovetail.sh/boots-at"
ENDS_AT: Final = "kwok.dovetail.sh/ends-at"
