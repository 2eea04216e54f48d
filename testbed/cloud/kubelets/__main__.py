"""Run the kubelets and the cloud's node controller:
`python -m testbed.cloud.kubelets --cloud URL --kubeconfig FILE`.
"""

import argparse
import signal
import sys
import threading
from pathlib import Path

from testbed.cloud.kubelets.clients import CloudControl, Cluster
from testbed.cloud.kubelets.joining import Kubelets
from testbed.cloud.kubelets.node_controller import NodeController


def main(given: list[str]) -> int:
    """Work until stopped."""
    parser = argparse.ArgumentParser(prog="python -m testbed.cloud.kubelets", description=__doc__)
    parser.add_argument("--cloud", required=True, help="the AWS server's endpoint")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--controller-period", type=float, default=5.0, help="seconds between two looks at dead nodes")
    parser.add_argument("--last-words", action="store_true", help="a kubelet that is shut down says NotReady first")
    parser.add_argument("--advertise-claims", action="store_true", help="nodes have their NodeClaims' devices, too")
    args = parser.parse_args(given)
    stopping = threading.Event()
    ends = (signal.SIGTERM, signal.SIGINT)
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)  # threads inherit it
    kubelets = Kubelets(
        Cluster(args.kubeconfig),
        CloudControl(args.cloud),
        last_words=args.last_words,
        advertise_claims=args.advertise_claims,
    )
    controller = NodeController(Cluster(args.kubeconfig), kubelets.followed, args.controller_period)
    # daemons: a long poll may be under way when it is time to stop
    for work in (kubelets.run, controller.run):
        threading.Thread(target=work, args=(stopping,), daemon=True).start()
    signal.sigwait(ends)  # no handler: one that sets an event can wait for a lock that its own thread holds
    stopping.set()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
