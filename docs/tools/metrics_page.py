"""Prints docs/reference/metrics.md: every metric of Karpenter's and of ours, those of the AWS provider included.

`python -m docs.tools.metrics_page > docs/reference/metrics.md`
"""

import sys

from docs.tools.metrics_reference import Metric, page, published
from dovetail.adapters.aws import meters


def all_published() -> dict[str, Metric]:
    """What a worker on AWS prints."""
    return published(meters.INSTRUMENTS, meters.SDK, meters.OWN, measured=meters.HELP)


if __name__ == "__main__":
    sys.stdout.write(page(all_published()))
