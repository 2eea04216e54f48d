"""Run the AWS server: `python -m testbed.cloud --state FOLDER [--port 0] [--world FILE] …`.

Writes `endpoint` into its folder when it accepts connections and removes it when it stops (SIGTERM or SIGINT).
Listens on 127.0.0.1 only.
"""

import argparse
import json
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

from testbed.cloud.control.buckets import ORDINARY_ACCOUNT
from testbed.cloud.settings import CloudSettings, prepare_environment


def _arguments(given: list[str]) -> CloudSettings:
    parser = argparse.ArgumentParser(prog="python -m testbed.cloud", description=__doc__)
    parser.add_argument("--state", type=Path, required=True, help="folder for the ledger and the endpoint file")
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--world", type=Path, help="a JSON file merged into the default world")
    parser.add_argument("--cluster-name", default="dovetail")
    parser.add_argument("--queue-name", default="dovetail")
    parser.add_argument("--cluster-endpoint", default="https://cluster.example")
    parser.add_argument("--cluster-ca", default="Y2EtYnVuZGxl", help="base64, as DescribeCluster gives it")
    parser.add_argument("--enforce-policies", action="store_true", help="refuse what deploy/aws does not allow")
    parser.add_argument("--ordinary-rates", action="store_true", help="refuse calls above an ordinary account's rates")
    args = parser.parse_args(given)
    rates = {"rateLimits": ORDINARY_ACCOUNT} if args.ordinary_rates else {}
    return CloudSettings(
        state=args.state,
        port=args.port,
        cluster_name=args.cluster_name,
        queue_name=args.queue_name,
        cluster_endpoint=args.cluster_endpoint,
        cluster_ca=args.cluster_ca,
        enforce_policies=args.enforce_policies,
        world={**rates, **(json.loads(args.world.read_text(encoding="utf-8")) if args.world else {})},
    )


def main(given: list[str]) -> int:
    """Serve until stopped."""
    settings = _arguments(given)
    prepare_environment()
    # moto reads the environment when it is imported, hence only now
    from werkzeug.serving import WSGIRequestHandler, make_server

    from testbed.cloud.http.gateway import Gateway
    from testbed.cloud.state.cloud import Cloud

    class Silent(WSGIRequestHandler):  # type: ignore[misc] # werkzeug is not followed, so its classes are Any
        """The ledger is the record of requests; a second one on stderr would only slow things."""

        def log_request(self, *_: object) -> None:
            return

    settings.state.mkdir(parents=True, exist_ok=True)
    cloud = Cloud(settings)
    server = make_server("127.0.0.1", settings.port, Gateway(cloud), threaded=True, request_handler=Silent)
    settings.endpoint_file.write_text(f"http://127.0.0.1:{server.server_port}\n", encoding="utf-8")

    def stop(_signal: int, _frame: FrameType | None) -> None:
        # shutdown() waits for the serving loop, which this very thread runs: it must come from another one
        threading.Thread(target=server.shutdown).start()

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, stop)
    try:
        server.serve_forever()
    finally:
        settings.endpoint_file.unlink(missing_ok=True)
        cloud.ledger.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
