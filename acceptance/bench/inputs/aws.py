"""What the AWS catalogue and a burst of launches cost.

The catalogue is the whole region: 1,395 types in four zones, facts and places as moto has them, prices from the table
that ships. "cold" goes from decoded answers to offerings; "over HTTP" is this process's own processor time for the same
with the answers still to be fetched and decoded. Launches go over HTTP to the test bed's AWS server, whose processor
time is not ours.
"""

import asyncio
import gc
import gzip
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import orjson

from dovetail.adapters.aws.adapter import AwsAdapter, UpkeepCluster
from dovetail.adapters.aws.catalogue.offerings import Circumstances, OfferedType, offered_types
from dovetail.adapters.aws.catalogue.prices import Prices
from dovetail.adapters.aws.catalogue.shortages import Shortages
from dovetail.adapters.aws.instance_types.region_types import Region
from dovetail.adapters.aws.instance_types.sized_types import SizedType, sized_types
from dovetail.adapters.aws.instance_types.type_facts import known_facts, read_type
from dovetail.adapters.aws.node_class.node_class import NodeClass, read_class
from dovetail.adapters.aws.settings import AwsSettings
from dovetail.adapters.aws.upkeep.node_classes import ClusterNow
from dovetail.cli.demo.temporal_server import start_temporal
from dovetail.model.values.json import Json
from dovetail.ports.cloud import Instance, Prepared
from testbed.cloud.server import CloudServer
from worlds.aws import ClassStore, Notices, a_claim_of_ec2, amd64, class_spec, on_demand, one_of, open_adapter
from worlds.interruption_scene import Scene

Line = dict[str, Any]

LAUNCHES: Final = 100
WARNINGS: Final = 500
MEBIBYTE: Final = 2**20
REGION: Final = "us-west-2"
SETTINGS: Final = AwsSettings(cluster="dovetail")


def _moto(name: str) -> Any:
    return orjson.loads(gzip.decompress(files("moto").joinpath(f"ec2/resources/{name}.json.gz").read_bytes()))


def _answers() -> tuple[dict[str, Json], dict[str, list[str]]]:
    """DescribeInstanceTypes and DescribeInstanceTypeOfferings, decoded."""
    offered: dict[str, list[str]] = {}
    for row in _moto(f"instance_type_offerings/availability-zone/{REGION}"):
        offered.setdefault(row["InstanceType"], []).append(row["Location"])
    return _moto("instance_types"), offered


def _region(types: dict[str, Json], offered: dict[str, list[str]]) -> Region:
    return Region(
        name=REGION,
        types={name: read_type(raw) for name, raw in types.items()},
        offered={name: frozenset(zones) for name, zones in offered.items()},
    )


def _class(region: Region) -> NodeClass:
    subnets = [{"id": f"subnet-{zone}", "zone": zone, "zoneID": f"usw2-az{zone[-1]}"} for zone in region.zones]
    raw = {"metadata": {"name": "default", "uid": "u", "generation": 1}, "spec": class_spec()}
    found = read_class({**raw, "status": {"subnets": subnets}})
    assert isinstance(found, NodeClass), found
    return found


def _world(offered: dict[str, list[str]]) -> Json:
    """The whole region for the test bed's server; prices by place in the alphabet: only how many there are matters."""
    zones = sorted({zone for places in offered.values() for zone in places})
    return {
        "types": sorted(offered),
        "offerings": offered,
        "zones": {zone: f"usw2-az{zone[-1]}" for zone in zones},
        "prices": {name: 0.1 + number / 1000 for number, name in enumerate(sorted(offered))},
    }


def _timed(act: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds, the collector off as the planner has it, and the result."""
    gc.collect()
    gc.disable()
    start = time.process_time()
    result = act()
    taken = time.process_time() - start
    gc.enable()
    return taken, result


def run_catalogue(repeat: int) -> Line:
    """Cold, when only prices have changed, when nothing has, and the memory that it keeps."""
    known_facts()
    types, offered = _answers()
    prices, shortages = Prices(REGION, clock=time.time), Shortages(clock=time.time, store=None)

    def cold() -> tuple[Region, tuple[SizedType, ...], tuple[OfferedType, ...]]:
        region = _region(types, offered)
        node_class = _class(region)
        sized = sized_types(region, node_class, SETTINGS, {})
        now = Circumstances(prices=prices, shortages=shortages)
        return region, sized, offered_types(sized, region, node_class, now)

    tracemalloc.start()
    region, sized, found = cold()
    kept = tracemalloc.get_traced_memory()[0] / MEBIBYTE
    tracemalloc.stop()
    first = min(_timed(cold)[0] for _ in range(repeat))
    node_class, changed, same = _class(region), [], []
    for _ in range(repeat):
        prices.learn_on_demand({name: (prices.on_demand(name) or 1.0) * 1.01 for name in types})
        now = Circumstances(prices=prices, shortages=shortages, before=found)
        taken, found = _timed(partial(offered_types, sized, region, node_class, now))
        changed.append(taken)
        now = Circumstances(prices=prices, shortages=shortages, before=found)
        same.append(_timed(partial(offered_types, sized, region, node_class, now))[0])
    return {
        "input": "generated_aws_catalogue",
        "types": len(types),
        "offerings": sum(len(each.type.offerings) for each in found),
        "seconds": round(first, 4),
        "seconds_every_price_changed": round(min(changed), 4),
        "seconds_nothing_changed": round(min(same), 4),
        "seconds_over_http_own_cpu": round(asyncio.run(_over_http(types, offered)), 4),
        "MB": round(kept, 1),
    }


async def _over_http(types: dict[str, Json], offered: dict[str, list[str]]) -> float:
    """Own processor time from nothing to offerings, fetching and decoding included."""
    with tempfile.TemporaryDirectory() as folder:
        server = CloudServer.start(Path(folder), world=_world(offered))
        try:
            classes = ClassStore()
            adapter = open_adapter(server, classes)
            await adapter.calls.call("ec2", "DescribeSubnets")  # clients made, models read
            region = await _of_region(adapter)
            start = time.process_time()
            again = await _of_region(adapter, anew=True)
            node_class = _class(again)
            offered_types(
                sized_types(again, node_class, SETTINGS, {}),
                again,
                node_class,
                Circumstances(prices=Prices(REGION, clock=time.time), shortages=Shortages(clock=time.time, store=None)),
            )
            taken = time.process_time() - start
            assert len(region.types) > 1_300, len(region.types)  # all but Macs
            await adapter.close()
            return taken
        finally:
            server.stop()


async def _of_region(adapter: AwsAdapter, *, anew: bool = False) -> Region:
    region_types = adapter.offerings.sources.region_types
    if anew:
        await region_types.refresh()
    return await region_types.region()


def run_launches(repeat: int) -> Line:
    """100 claims at once, prepared and launched: our processor time and the calls of each."""
    with tempfile.TemporaryDirectory() as folder:
        server = CloudServer.start(Path(folder), world=_world(_answers()[1]))
        try:
            return asyncio.run(_launches(server))
        finally:
            server.stop()


async def _launches(server: CloudServer) -> Line:
    classes, notices = ClassStore(), Notices()
    adapter = open_adapter(server, classes, threads=32)
    classes.apply()
    await adapter.node_class_upkeep(
        UpkeepCluster(
            objects=classes, claims=None, notices=notices, nodes=None, now=ClusterNow(claims=tuple, pools=tuple)
        )
    ).keep()
    await _launched(adapter)  # the first of a process makes clients and reads the types
    since = server.control("GET", "ledger/last")
    start, start_processor = time.perf_counter(), time.process_time()
    await asyncio.gather(*[_launched(adapter) for _ in range(LAUNCHES)])
    wall, processor = time.perf_counter() - start, time.process_time() - start_processor
    calls: dict[str, int] = {}
    for call in server.calls(since=since):
        calls[call["op"]] = calls.get(call["op"], 0) + 1
    await adapter.close()
    rate = {each.operation: each for each in adapter.settings.rates}["CreateFleet"]
    return {
        "input": "generated_aws_launches",
        "launches": LAUNCHES,
        "seconds": round(wall, 3),
        "cpu": round(processor, 3),
        "milliseconds_of_cpu_per_launch": round(1000 * processor / LAUNCHES, 2),
        "calls_per_launch": round(sum(calls.values()) / LAUNCHES, 2),
        "calls": calls,
        # AWS itself lets a burst of CreateFleet through and then a fixed number a second.
        "seconds_that_aws_makes_of_1000": round((1000 - rate.burst) / rate.per_second, 0),
    }


async def _launched(adapter: AwsAdapter) -> None:
    claim = a_claim_of_ec2(one_of("karpenter.k8s.aws/instance-category", "c", "m", "r"), on_demand(), amd64())
    prepared = await adapter.cloud.prepare(claim)
    assert isinstance(prepared, Prepared), prepared
    instance = await adapter.cloud.launch(claim, prepared.request, claim.uid)
    assert isinstance(instance, Instance), instance


def run_interruptions(repeat: int) -> Line:
    """500 spot warnings that wait in the queue: from the worker's start until the last claim is deleted."""
    with tempfile.TemporaryDirectory() as folder:
        server = CloudServer.start(Path(folder))
        try:
            return asyncio.run(_interruptions(server, Path(folder) / "temporal"))
        finally:
            server.stop()


async def _interruptions(server: CloudServer, folder: Path) -> Line:
    folder.mkdir()
    temporal = await start_temporal(folder)
    try:
        adapter = open_adapter(server, ClassStore())
        scene = Scene(server, await temporal.client(), instances=WARNINGS)
        await asyncio.to_thread(scene.send_burst, WARNINGS)
        queue = adapter.interruptions
        assert queue is not None
        start, start_processor = time.perf_counter(), time.process_time()
        async with scene.worker(queue):
            while len(scene.deletes()) < WARNINGS:
                assert time.perf_counter() - start < 300, f"{len(scene.deletes())} of {WARNINGS} answered"
                await asyncio.sleep(0.05)
            wall, processor = time.perf_counter() - start, time.process_time() - start_processor
        await adapter.close()
        return {
            "input": "generated_aws_interruptions",
            "warnings": WARNINGS,
            "seconds": round(wall, 2),
            "cpu": round(processor, 2),
        }
    finally:
        await asyncio.to_thread(temporal.stop)


ROWS: Final[dict[str, Callable[[int], Line]]] = {
    "generated_aws_catalogue": run_catalogue,
    "generated_aws_launches": run_launches,
    "generated_aws_interruptions": run_interruptions,
}
