"""What is remembered of a shortage: from its first refusal until it is asked for again, by all workers."""

from dataclasses import dataclass, field

from dovetail.adapters.aws.catalogue.shortages import Shortage, Shortages, ShortFor, read_key

M5 = Shortage(capacity_type="on-demand", instance_type="m5.large", zone="us-west-2a")
POOL = ("on-demand", "m5.large", "us-west-2a")


@dataclass
class Shared:
    """A ConfigMap and a clock, which two workers share."""

    data: dict[str, float] = field(default_factory=dict)
    now: float = 1000.0

    def clock(self) -> float:
        return self.now

    async def read(self) -> dict[str, float]:
        return dict(self.data)

    async def write(self, changes: dict[str, float | None]) -> None:
        for key, moment in changes.items():
            self.data.pop(key, None)
            if moment is not None:
                self.data[key] = moment

    def worker(self) -> Shortages:
        return Shortages(self, self.clock)


async def test_a_shortage_that_is_refused_again_is_as_old_as_its_first_refusal() -> None:
    shared = Shared()
    one = shared.worker()
    await one.remember([M5])
    shared.now += 45.0
    await one.remember([M5])
    assert one.pools() == {POOL: ShortFor(until=1225.0, since=1000.0)}

    restarted = shared.worker()
    await restarted.reread()
    assert restarted.pools() == one.pools()
    shared.now += 45.0
    await restarted.remember([M5])
    shared.now += 4.0
    await one.reread()
    assert one.pools() == restarted.pools() == {POOL: ShortFor(until=1270.0, since=1000.0)}


async def test_what_two_workers_find_at_once_is_as_old_as_the_first_of_them_says() -> None:
    shared = Shared()
    one, two = shared.worker(), shared.worker()
    await one.remember([M5])
    shared.now += 2.0
    await two.remember([M5])
    assert [worker.pools()[POOL].since for worker in (one, two)] == [1000.0, 1002.0]
    shared.now += 43.0
    await one.remember([M5])
    await two.reread()
    assert [worker.pools()[POOL].since for worker in (one, two)] == [1000.0, 1000.0]


async def test_one_that_ended_or_was_sold_again_begins_anew_and_leaves_nothing_behind() -> None:
    shared = Shared()
    one = shared.worker()
    await one.remember([M5])
    shared.now += 181.0
    assert one.pools() == {}
    await one.remember([M5])
    assert one.pools()[POOL].since == 1181.0

    await one.forget(M5)
    assert (one.pools(), shared.data) == ({}, {})

    await one.remember([M5])
    shared.now += 181.0
    other = Shortage(capacity_type="spot", instance_type="m5.large", zone="us-west-2a")
    await one.remember([other])
    assert set(shared.data) == {other.key, other.since_key}


async def test_what_has_ended_is_removed_also_where_it_was_found_by_a_worker_that_is_gone() -> None:
    """AWS-72: entries that stay would fill the ConfigMap, and then none could be written."""
    gone = Shortage(capacity_type="spot", instance_type="c5.large", zone="us-west-2b")
    shared = Shared(data={gone.key: 900.0, gone.since_key: 800.0, M5.since_key: 700.0, "not-ours": 1.0})
    one = shared.worker()
    await one.remember([M5])
    shared.now += 181.0
    assert one.revision > 0  # as each plan asks
    other = Shortage(capacity_type="spot", instance_type="m5.large", zone="us-west-2a")

    await one.remember([other])

    assert set(shared.data) == {other.key, other.since_key, "not-ours"}


async def test_what_another_worker_has_found_short_again_is_not_removed() -> None:
    """AWS-72: the end that this worker remembers is that of before."""
    shared = Shared()
    one, two = shared.worker(), shared.worker()
    await one.remember([M5])
    await two.reread()
    shared.now += 181.0
    await one.remember([M5])

    await two.remember([Shortage(capacity_type="spot", instance_type="m5.large", zone="us-west-2a")])

    assert shared.data[M5.key] == 1361.0


async def test_an_older_worker_s_entry_is_as_old_as_its_reading_and_it_takes_ours_for_what_it_knows() -> None:
    shared = Shared(data={M5.key: 1100.0})
    one = shared.worker()
    await one.reread()
    assert one.pools() == {POOL: ShortFor(until=1100.0, since=1000.0)}
    assert read_key(M5.key) == M5 and read_key(M5.since_key) is None


async def test_what_one_worker_could_buy_again_is_short_for_none() -> None:
    """Two and a half minutes long `status` of the other said that it had run out, and no plan asked for it."""
    shared = Shared()
    one, two = shared.worker(), shared.worker()
    await one.remember([M5])
    await two.reread()
    before = two.revision
    await one.forget(M5)
    shared.now += 4.0
    await two.reread()
    assert (two.pools(), two.holds(M5), two.revision > before) == ({}, False, True)


async def test_what_only_this_worker_knows_stays_short_where_it_could_not_be_written() -> None:
    shared = Shared()
    one = shared.worker()
    await one.remember([M5])
    shared.data.clear()
    shared.now += 4.0
    await one.reread()
    assert one.holds(M5)
