"""What upstream Karpenter did, recorded: results, AWS traffic, clusters in mid-flight, benchmark inputs.

Each folder has a README that says how it was recorded and how to compare. These files are never edited.
"""

from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).parent
RESULTS: Final = _HERE / "vectors"
# More of the same, which were answered otherwise when they were first tried.
FOUND: Final = (_HERE / "vectors-found", _HERE / "vectors-found-more", _HERE / "vectors-1.15")
TRAFFIC: Final = (_HERE / "vectors-aws", _HERE / "vectors-aws-more")
MID_FLIGHT: Final = _HERE / "adopt" / "mid_flight.jsonl.gz"
BENCHMARKS: Final = _HERE / "bench"
