"""The port KeptObjects over a folder and over a bucket: the same answers."""

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import boto3
import pytest
import pytest_asyncio
from moto import mock_aws

from dovetail.adapters.aws.kept_objects import BucketObjects
from dovetail.adapters.folder.kept_objects import FolderObjects
from dovetail.ports.failures import Failure, Forbidden
from dovetail.ports.kept_objects import KeptObjects
from dovetail.settings.settings import read_settings
from dovetail.wiring.world import open_kept_objects


@pytest_asyncio.fixture(params=["folder", "bucket"], loop_scope="session")
async def objects(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[KeptObjects]:
    if request.param == "folder":
        yield FolderObjects(tmp_path)
        return
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        boto3.client("s3").create_bucket(Bucket="kept")
        found = open_kept_objects(read_settings({}), "s3://kept/some/where/")
        assert isinstance(found, BucketObjects)
        yield found
        await found.close()


async def test_what_was_put_is_read_listed_replaced_and_deleted(objects: KeptObjects) -> None:
    assert (await objects.get("a/b.gz"), await objects.names("a/")) == (None, ())
    for name, data in (("a/b.gz", b"old"), ("a/b.gz", b"new"), ("a/c/d.gz", b"d"), ("ab/e.gz", b"e")):
        await objects.put(name, data)
    assert await objects.get("a/b.gz") == b"new"
    assert await objects.get_all(["ab/e.gz", "a/x.gz", "a/b.gz"]) == [b"e", None, b"new"]
    assert await objects.names("a/") == ("a/b.gz", "a/c/d.gz")
    assert await objects.names("") == ("a/b.gz", "a/c/d.gz", "ab/e.gz")
    for _ in range(2):
        await objects.delete("a/b.gz")
    assert await objects.names("a/") == ("a/c/d.gz",)


@pytest.mark.slow
async def test_a_bucket_lists_more_than_a_page(objects: KeptObjects, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    for number in range(1003):
        await objects.put(f"many/{number:04}", b"x")
    names = await objects.names("many/")
    assert (len(names), names[0], names[-1]) == (1003, "many/0000", "many/1002")


async def test_a_bucket_that_is_not_there_is_no_empty_one(
    objects: KeptObjects,
) -> None:
    if isinstance(objects, BucketObjects):
        objects.bucket = "missing"
        with pytest.raises(Forbidden, match="s3:list_objects_v2 s3://missing/some/where/a/"):
            await objects.names("a/")
    else:
        assert await objects.names("a/") == (), "a folder is made with its first object"


async def test_a_folder_that_cannot_be_written_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(Failure, match="cannot be written"):
        await FolderObjects(tmp_path / "file").put("a", b"x")
