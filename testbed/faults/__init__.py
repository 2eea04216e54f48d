"""Sick surroundings for tests: servers that are slow, refuse, fall silent or break off, stopped workers, wrong clocks.

    proxy = await HttpProxy.to_api_server(kubeconfig)      # plain HTTP before the API server, as that kubeconfig's user
    worker_environment["KUBECONFIG"] = str(proxy.kubeconfig(folder))
    with proxy.sick(Fault(path=r"/csinodes", status=500)):  # any number of faults, one within the other
        ...
    await proxy.close()

`HttpProxy.to(url)` stands before AWS (`AWS_ENDPOINT_URL`), `TcpProxy` before Temporal (`TEMPORAL_ADDRESS`): it knows
bytes only. `paused(process)` stops a worker as SIGSTOP does and lets it go on; `skewed(command, seconds)` is the
command of a worker whose clock is off, `jumping(command, file)` of one whose clock is set while it runs. Everything
that was done to a request is kept in `proxy.done`, so that a test can say that its fault was really met.
"""

from testbed.faults.clock import jumping, set_clock, skewed
from testbed.faults.fault import Fault
from testbed.faults.http_proxy import HttpProxy
from testbed.faults.pause import paused
from testbed.faults.tcp_proxy import TcpProxy

__all__ = ["Fault", "HttpProxy", "TcpProxy", "jumping", "paused", "set_clock", "skewed"]
