"""An image of before a change that its owner has deregistered: how soon that is noticed, by a clock of the test's."""

from typing import Any, cast

import pytest

from dovetail.adapters.aws.resources.available_images import AvailableImages

WITHIN = 60.0  # seconds for which a pod waits at most because of it


class Owner:
    """EC2, where an image is deregistered at a moment."""

    def __init__(self, gone_at: float) -> None:
        self.now, self.gone_at, self.asked = 0.0, gone_at, 0

    async def every(self, *_: str, **given: Any) -> list[dict[str, str]]:
        self.asked += 1
        return [] if self.now >= self.gone_at else [{"ImageId": each} for each in given["Filters"][0]["Values"]]


@pytest.mark.parametrize("gone_at", [0.5, 1.0, 15.0, 29.0, 30.0, 31.0, 299.0])
async def test_an_image_that_is_gone_is_noticed_within_a_minute_however_often_it_is_asked_for(gone_at: float) -> None:
    owner = Owner(gone_at)
    images = AvailableImages(cast(Any, owner), lambda: owner.now)
    assert await images.among(frozenset({"ami-1"})) == {"ami-1"}

    while await images.among(frozenset({"ami-1"})):
        owner.now += 0.5

    assert gone_at <= owner.now <= gone_at + WITHIN
    assert owner.asked <= owner.now / 30.0 + 2.0, "and EC2 is asked twice a minute"


async def test_after_a_refusal_it_is_noticed_at_once() -> None:
    owner = Owner(1.0)
    images = AvailableImages(cast(Any, owner), lambda: owner.now)
    await images.among(frozenset({"ami-1"}))
    owner.now = 2.0
    assert await images.among(frozenset({"ami-1"})) == {"ami-1"}

    images.forget()

    assert await images.among(frozenset({"ami-1"})) == frozenset()
