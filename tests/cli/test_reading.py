"""YAML that a stranger gives: what is read, and what is refused by its document and line before it costs anything."""

import base64
import re
import zlib
from pathlib import Path

import pytest
import yaml

from dovetail.answers.change.carried import packed, unpacked
from dovetail.answers.change.documents import MOST_OBJECTS, called, documents_of, text_of
from dovetail.answers.change.reading import MOST_BYTES, MOST_VALUES, bodies_of
from dovetail.answers.failures import NotUnderstood
from tests.cli.worlds import a_ready_pool

HEAD = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: a}\nspec:\n"
LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{after}: &{after} [{','.join([f'*{before}'] * 10)}]\n"
    for before, after in zip("abcdefgh", "bcdefghi", strict=True)
)
DEEP_ALIASES = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 60))

REFUSED = {
    "a megabyte": (f"{HEAD}  x: [{'a,' * 500_000}]\n", "f.yaml: it is larger than 256 KiB"),
    "many values": (f"{HEAD}  x: [{'a,' * 100_000}]\n", "document 1, line 5: more than 20,000 values"),
    "empty documents": ("---\n" * 60_000, "more than 20,000 values"),
    "brackets": ("[" * 200_000, "document 1, line 1: more than 50 levels"),
    "brackets in lines": ("[\n" * 100_000, "line 51: more than 50 levels"),
    "braces": ("{" * 200_000, "more than 50 levels"),
    "dashes": ("- " * 100_000, "more than 50 levels"),
    "question marks": ("? " * 100_000, "more than 50 levels"),
    "a billion laughs": (LAUGHS, "document 1, line 5: more than 20,000 values, with those that aliases stand for"),
    "deep aliases": (DEEP_ALIASES, "more than 50 levels"),
    "merged laughs": (LAUGHS.replace("[", "{<<: [").replace("]", "]}"), "more than 20,000 values"),
    "itself": ("a: &a [*a]", "line 1: the alias *a stands for nothing that has ended before it"),
    "an alias of the document before": ("a: &a x\n---\nb: *a\n", "document 2, line 3: the alias *a"),
    "digits": (f"{HEAD}  weight: {'9' * 200_000}", "line 5: a number of 200,000 characters"),
    "minutes of minutes": (f"a: 1{':59' * 30_000}", "a number of 90,001 characters"),
    "hexadecimal": (f"a: 0x{'f' * 60}", "is more than 64 bits hold"),
    "endless": ("a: .inf", '".inf" is no number that JSON has'),
    "no number": ("a: .nan", '".nan" is no number that JSON has'),
    "a tag that lies": ("a: !!int abc", '"abc" is not what its tag says'),
    "an empty number": ("a: !!int", '"" is not what its tag says'),
    "no truth": ("a: !!bool maybe", '"maybe" is not what its tag says'),
    "a tag of Python": ("a: !!python/object:os.system x", "is of nothing that JSON has"),
    "a set": ("a: !!set {x}", "is of nothing that JSON has"),
    "a key that is no text": (f"{HEAD}  labels: {{1: x}}\n", "spec.labels: the key 1 is no text; write it in quotes"),
    "a key that is a list": ("? [a]\n: b", "it is no YAML"),
    "the second document": (f"{HEAD}---\na: [\n", "document 2, line 7: it is no YAML"),
    "a control character": ("a: \0", "document 1: it is no YAML"),
    "half a character": ("a: \ud800", "it is no YAML"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_costs_more_than_it_holds_is_refused_by_document_and_line(name: str) -> None:
    text, words = REFUSED[name]
    with pytest.raises(NotUnderstood, match=re.escape(words)) as caught:
        bodies_of(text, "f.yaml")
    assert str(caught.value).startswith("f.yaml") and len(str(caught.value)) < 600


def test_what_people_write_is_read_as_it_was() -> None:
    spec = ("replicas: 3", "ratio: 0.5", "truth: true", "none: ~", "budgets: &b", "- {nodes: 10%}", "same: *b")
    text = HEAD + "".join(f"  {line}\n" for line in spec) + "---\n"
    first, second = bodies_of(text, "f.yaml")

    assert first.value == yaml.safe_load(text.removesuffix("---\n"))
    assert (first.place, second.place, second.value) == ("f.yaml, document 1", "f.yaml, document 2", None)


def test_a_key_that_yaml_takes_for_a_truth_is_named() -> None:
    with pytest.raises(NotUnderstood, match="the key True is no text"):
        bodies_of("on: x", "f.yaml")


def test_a_moment_stays_a_text_as_in_kubectl() -> None:
    assert [body.value for body in bodies_of("a: 2026-01-01\nb: 2026-99-99\nc: =\n", "f")] == [
        {"a": "2026-01-01", "b": "2026-99-99", "c": "="}
    ]


def test_the_parser_is_the_one_in_c() -> None:
    """With the other one a file within the limits takes seconds."""
    assert yaml.__with_libyaml__


def test_a_hundred_pools_are_within_the_limits() -> None:
    pools = [a_ready_pool(f"pool-{number}") for number in range(100)]
    many = yaml.safe_dump_all(pools)
    assert [body.value for body in bodies_of(many, "many.yaml")] == pools and len(many) < MOST_BYTES / 2


def test_each_object_is_asked_of_the_server_so_there_may_not_be_any_number() -> None:
    one = "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: a%d}}\n"
    many = "---\n".join(one % number for number in range(MOST_OBJECTS + 1))
    with pytest.raises(NotUnderstood, match=f"document {MOST_OBJECTS + 1}: more than {MOST_OBJECTS} objects"):
        documents_of(many, "many.yaml", frozenset())
    assert MOST_OBJECTS * 8 < MOST_VALUES


def carried(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode()


def bomb(megabytes: int) -> bytes:
    """Bytes that unpack to that many megabytes."""
    maker = zlib.compressobj(9)
    return b"".join([maker.compress(bytes(2**20)) for _ in range(megabytes)]) + maker.flush()


def test_a_bomb_is_not_unpacked() -> None:
    packed_bomb = carried(bomb(20))
    assert len(packed_bomb) < 40_000
    with pytest.raises(NotUnderstood, match="larger than 256 KiB"):
        unpacked(packed_bomb)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x", "cannot be unpacked"),
        ("ü", "cannot be unpacked"),
        (carried(b"plain"), "cannot be unpacked"),
        (carried(zlib.compress(b"\xff")), "cannot be unpacked"),
        (carried(zlib.compress(b"a: b" * 100)[:-6]), "its end is missing"),
    ],
)
def test_what_is_no_file_is_said_to_be_none(text: str, words: str) -> None:
    with pytest.raises(NotUnderstood, match=words):
        unpacked(text)


def test_a_file_of_the_largest_size_arrives_whole_and_one_more_byte_does_not_leave() -> None:
    assert unpacked(packed("a" * MOST_BYTES)) == "a" * MOST_BYTES
    with pytest.raises(NotUnderstood, match="larger than 256 KiB"):
        packed("a" * (MOST_BYTES + 1))


def test_the_command_line_reads_a_file_by_the_same_limits(tmp_path: Path) -> None:
    file = tmp_path / "change.yaml"
    for text, words in REFUSED.values():
        if text.isprintable() or "\n" in text:
            file.write_text(text)
            with pytest.raises(NotUnderstood, match=re.escape(words.removeprefix("f.yaml: "))):
                documents_of(text_of(file), called(file), frozenset())
