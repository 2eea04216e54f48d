"""The objects that tests are made of are made in one place: a second builder would give them other defaults."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
# Each is made there and nowhere else; what is usual in a folder is made of it, under another name.
MODELS: Final = "worlds/disruption.py"
MANIFESTS: Final = "worlds/manifests.py"
BUILDERS: Final = {
    **dict.fromkeys(("a_claim", "a_cluster", "a_node", "a_pod", "a_pool"), MODELS),
    **dict.fromkeys(("claim_manifest", "node_manifest", "pod_manifest", "pool_manifest"), MANIFESTS),
}
KINDS: Final = {
    "NodeClaim": "dovetail.model.nodes",
    "Node": "dovetail.model.nodes",
    "Pod": "dovetail.model.pods",
    "NodePool": "dovetail.model.pools",
}


def functions() -> Iterator[tuple[str, ast.Module, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Of tests and of what they are made of, with their files."""
    for folder in ("tests", "worlds"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            tree = ast.parse(file.read_text())
            for each in ast.walk(tree):
                if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield str(file.relative_to(ROOT)), tree, each


def models_of(tree: ast.Module) -> set[str]:
    """Which of the four a module has by their own names."""
    imports = [each for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)]
    return {name.name for each in imports for name in each.names if KINDS.get(name.name) == each.module}


def gives(function: ast.AST, tree: ast.Module) -> str:
    """The kind that it makes and returns without a builder, if it does so: as the product has it or as the API does."""
    for each in ast.walk(function):
        value = each.value if isinstance(each, ast.Return) else None
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in models_of(tree):
            return value.func.id
        if isinstance(value, ast.Dict):
            pairs = zip(value.keys, value.values, strict=True)
            said = {k.value: v.value for k, v in pairs if isinstance(k, ast.Constant) and isinstance(v, ast.Constant)}
            if (kind := str(said.get("kind"))) in KINDS:
                return f"{kind} as JSON"
    return ""


def test_each_builder_is_defined_once() -> None:
    found = {name: [file for file, _, each in functions() if each.name == name] for name in BUILDERS}

    assert found == {name: [file] for name, file in BUILDERS.items()}


def test_no_other_function_makes_a_second_one() -> None:
    found = {f"{file}::{each.name}": gives(each, tree) for file, tree, each in functions()}
    others = {name: kind for name, kind in found.items() if kind and name.partition("::")[0] not in BUILDERS.values()}

    assert not others, "make it of what worlds/disruption.py or worlds/manifests.py has"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("from dovetail.model.pods import Pod\ndef web(): return Pod(name='web')", "Pod"),
        ("def web(): return {'kind': 'NodePool', 'metadata': {}}", "NodePool as JSON"),
        ("from acceptance.binding import Node\ndef n(): return Node('n')", ""),
        ("from worlds.disruption import a_pod\ndef web(): return a_pod(name='web')", ""),
        ("def web(): return {'kind': 'Deployment'}", ""),
    ],
)
def test_a_second_builder_is_seen(code: str, kind: str) -> None:
    tree = ast.parse(code)

    assert gives(tree.body[-1], tree) == kind
