"""A second cloud is one module and one line in dovetail/settings/providers.py; nothing else names a cloud."""

import ast
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
import yaml

from dovetail.adapters.kubernetes_json.kinds import CLUSTER_KINDS
from dovetail.model.names import WELL_KNOWN_LABELS
from dovetail.model.nodes import NodeClaim, NodeClassRef
from dovetail.model.values.json import Json
from dovetail.ports.cloud import Instance, Prepared
from dovetail.ports.provider import Provider
from dovetail.settings.deciding import disruption_settings, placement_settings
from dovetail.settings.providers import DEFAULT, PROVIDERS, provider_named
from dovetail.settings.settings import Settings, SettingsError, read_settings
from dovetail.wiring.world import World, open_world
from tests.adapters.kube.fake_server import FakeServer, fake_server, says, streams
from tests.worker.made_up_cloud import NODE_CLASS, SHAPE, MadeUpCloud, MadeUpEnvironment
from worlds.disruption import a_claim

ROOT: Final = Path(__file__).parents[2]
NOTHING: Final[Mapping[str, Sequence[Json]]] = {}
CHOSEN: Final = {"CLUSTER_NAME": "c", "DOVETAIL_CLOUD": "made-up"}


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one line."""
    monkeypatch.setitem(PROVIDERS, "made-up", "tests.worker.made_up_cloud")


def an_empty_cluster(server: FakeServer) -> None:
    """Empty, but for one NodeClass of the made-up cloud."""
    for path in [kind.path for kind in CLUSTER_KINDS] + [NODE_CLASS.path]:
        server.on(path, says(200, {"metadata": {"resourceVersion": "5"}, "items": []}))
        server.on(f"{path}?watch", streams())
    there = {"metadata": {"name": "default", "uid": "u", "resourceVersion": "4"}}
    server.on(NODE_CLASS.path, says(200, {"metadata": {"resourceVersion": "5"}, "items": [there]}))
    server.on("/version", says(200, {"major": "1", "minor": "36"}))
    server.on("/api/v1/namespaces/default/events", says(201))
    server.on("/api/v1/namespaces/kube-system", says(200, {"metadata": {"name": "kube-system", "uid": "uid-1"}}))


@asynccontextmanager
async def opened(
    folder: Path, listed: Mapping[str, Sequence[Json]] = NOTHING, **given: str
) -> AsyncIterator[tuple[World, FakeServer]]:
    """The made-up cloud through the front door, over the adapter that a worker has. `listed`: objects by their path."""
    async with fake_server(folder) as server:
        an_empty_cluster(server)
        for path, items in listed.items():
            server.on(path, says(200, {"metadata": {"resourceVersion": "5"}, "items": items}))
        world = await open_world(read_settings({**CHOSEN, "KUBECONFIG": str(server.kubeconfig()), **given}))
        try:
            await world.ready()
            yield world, server
        finally:
            await world.close()


def of_the_made_up_class(name: str = "default") -> NodeClaim:
    return replace(a_claim(), node_class=NodeClassRef(group=NODE_CLASS.group, kind=NODE_CLASS.kind, name=name))


class TestASecondCloud:
    def test_its_settings_are_read_and_the_other_cloud_s_are_not(self) -> None:
        found = read_settings({**CHOSEN, "MADE_UP_ACCOUNT": "a", "MADE_UP_RACKS": "3", "RESERVED_ENIS": "many"})

        assert found.of_cloud == MadeUpEnvironment(account="a", racks=3)
        assert Settings(cloud="made-up").of_cloud == MadeUpEnvironment()

    def test_a_setting_of_it_that_cannot_be_used_is_an_error_that_names_the_variable(self) -> None:
        with pytest.raises(SettingsError, match=r"^MADE_UP_RACKS: "):
            read_settings({**CHOSEN, "MADE_UP_RACKS": "0"})

    def test_its_labels_are_known_to_placement_and_disruption(self) -> None:
        settings = read_settings(CHOSEN)

        known = WELL_KNOWN_LABELS | provider_named("made-up").labels
        assert placement_settings(settings).well_known == known
        assert disruption_settings(settings).well_known == known
        assert SHAPE in known

    async def test_its_node_class_is_watched_and_it_answers_through_the_world(self, tmp_path: Path) -> None:
        async with opened(tmp_path, MADE_UP_ACCOUNT="a") as (world, _):
            assert world.catalogues.supported_classes() == {(NODE_CLASS.group, NODE_CLASS.kind)}
            assert (await world.catalogues.node_class(of_the_made_up_class().node_class)).found
            assert not (await world.catalogues.node_class(of_the_made_up_class("other").node_class)).found

            prepared = await world.cloud.prepare(of_the_made_up_class())
            assert isinstance(prepared, Prepared)
            launched = await world.cloud.launch(of_the_made_up_class(), prepared.request, "t")
            assert isinstance(launched, Instance) and launched.provider_id == "made-up:///a/t"
            assert await world.cloud.list_instances() == (launched,)

    async def test_its_node_class_is_among_what_doctor_and_snapshot_look_at(self, tmp_path: Path) -> None:
        async with opened(tmp_path) as (world, server):
            assert [each["metadata"]["name"] for each in (await world.inspection.objects())[NODE_CLASS.kind]] == [
                "default"
            ]
            server.on(NODE_CLASS.path, says(404, b"404 page not found"))
            server.on("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", says(201, {"status": {}}))
            assert NODE_CLASS.kind in (await world.inspection.facts()).missing_kinds

    async def test_an_event_about_its_class_names_the_class_s_version(self, tmp_path: Path) -> None:
        async with opened(tmp_path) as (world, server):
            assert world.classes is not None
            await world.classes.keep()

            [event] = [body for method, _, _, body, _ in server.asked if method == "POST"]
            assert event["involvedObject"]["apiVersion"] == "made-up.example/v2"

    async def test_it_is_closed_with_the_world(self, tmp_path: Path) -> None:
        async with opened(tmp_path) as (world, _):
            cloud = world.classes
        assert isinstance(cloud, MadeUpCloud) and cloud.closed


class TestTheTable:
    def test_without_a_choice_the_cloud_is_aws(self) -> None:
        assert (Settings().cloud, DEFAULT, Settings().provider.name) == ("aws", "aws", "aws")

    def test_an_unknown_cloud_is_an_error_that_names_the_variable_and_the_clouds(self) -> None:
        with pytest.raises(SettingsError, match=r"^DOVETAIL_CLOUD: .*'moon'; there is aws, kwok, made-up$"):
            read_settings({"CLUSTER_NAME": "c", "DOVETAIL_CLOUD": "moon"})

    def test_every_folder_with_a_provider_has_its_line(self) -> None:
        """A cloud without its line could not be chosen."""
        folders = {file.parent.name for file in (ROOT / "dovetail/adapters").glob("*/provider.py")}
        assert folders == {module.split(".")[2] for name, module in PROVIDERS.items() if name != "made-up"}

    @pytest.mark.parametrize("name", PROVIDERS)
    def test_a_provider_bears_the_name_of_its_line(self, name: str) -> None:
        found = provider_named(name)
        assert isinstance(found, Provider) and found.name == name

    @pytest.mark.parametrize("name", PROVIDERS)
    def test_the_definitions_and_rights_of_a_cloud_s_classes_are_shipped(self, name: str) -> None:
        """Without these, its classes could be neither created nor read."""
        file = "rbac" if name == DEFAULT else name
        rules = next(iter(yaml.safe_load_all((ROOT / f"deploy/kubernetes/{file}.yaml").read_text())))["rules"]
        for kind in provider_named(name).node_classes:
            definition = yaml.safe_load((ROOT / f"deploy/crds/{kind.group}_{kind.plural}.yaml").read_text())
            assert definition["spec"]["names"]["kind"] == kind.kind
            assert kind.version in [version["name"] for version in definition["spec"]["versions"]]
            granted = {verb for rule in rules if kind.plural in rule["resources"] for verb in rule["verbs"]}
            assert granted >= {"get", "list", "watch"}


# Where product code may name AWS, and why. Everywhere else a cloud is what its provider says.
MAY_NAME_AWS: Final = {
    "dovetail/adapters/aws/": "its own folder",
    "dovetail/api/": "the kinds that are served and their rules, from which deploy/crds is generated",
    "dovetail/settings/providers.py": "its one line",
    "dovetail/model/scheduling/key_aliases.py": "what volume drivers call the zone",
    "dovetail/adapters/kubernetes_json/parsing/class_hashes.py": "a wire format that the simulated cloud writes too",
    "dovetail/adapters/kubernetes_json/parsing/workloads.py": "Kubernetes' own names of volume drivers",
    "dovetail/adapters/simulator/cloud/catalogue.py": "simulated worlds that were taken from AWS",
    "dovetail/adapters/simulator/cloud/node_classes.py": "simulated worlds that were taken from AWS",
}
A_NAME: Final = re.compile(r"Aws|AWS|Ec2|EC2|Eks|EKS|(?<![a-z])(?:aws|ec2|eks)(?![a-z])")


def said(file: Path) -> Iterator[str]:
    """Every identifier and every text of a module; no comment and no docstring."""
    tree = ast.parse(file.read_text())
    with_docstring = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(each.body[0].value)
        for each in ast.walk(tree)
        if isinstance(each, with_docstring) and each.body and isinstance(each.body[0], ast.Expr)
    }
    for each in ast.walk(tree):
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in docstrings:
            yield each.value
        for name in ("id", "attr", "arg", "name", "asname", "module"):
            if isinstance(found := getattr(each, name, None), str):
                yield found


def names_one(file: Path, name: re.Pattern[str]) -> bool:
    """Most modules do so nowhere, not even in their comments, and need not be parsed."""
    return name.search(file.read_text()) is not None and any(name.search(each) for each in said(file))


def names_aws(file: Path) -> bool:
    return names_one(file, A_NAME)


def product() -> dict[str, Path]:
    return {
        str(file.relative_to(ROOT)): file
        for folder in ("dovetail", "activities", "worker", "workflows")
        for file in sorted((ROOT / folder).rglob("*.py"))
    }


def test_nothing_but_its_folder_and_its_line_names_a_cloud() -> None:
    """A new place that knows AWS is a place that a second cloud would have to know of."""
    files = product()
    assert len(files) > 400
    assert [name for name, file in files.items() if not name.startswith(tuple(MAY_NAME_AWS)) and names_aws(file)] == []


def test_nothing_but_its_folder_its_line_and_its_definition_names_kwok() -> None:
    """The second cloud is where the rule is tried: what had to know it beside its own files would stand here."""
    simulated = "dovetail/adapters/simulator/cloud/"  # sells what that cloud does (decision 321)
    of_kwok = ("dovetail/adapters/kwok/", "dovetail/api/", "dovetail/settings/providers.py", simulated)
    known = re.compile(r"kwok", re.IGNORECASE)
    others = {name: file for name, file in product().items() if not name.startswith(of_kwok)}
    assert [name for name, file in others.items() if names_one(file, known)] == []


@pytest.mark.parametrize("place", MAY_NAME_AWS)
def test_a_place_that_may_name_aws_does(place: str) -> None:
    """A permission that is no longer needed is taken back."""
    assert any(names_aws(file) for name, file in product().items() if name.startswith(place))


@pytest.mark.parametrize(
    "planted",
    [
        "import dovetail.adapters.aws.names",
        "from dovetail.adapters import aws",
        "from dovetail.adapters.aws.names import GROUP",
        'KIND = "EC2NodeClass"',
        'LABEL = "karpenter.k8s.aws/instance-family"',
        "def open_aws() -> None: ...",
        "class AwsThing: ...",
        "def f(aws: int) -> None: ...",
        "f(aws_gates=1)",
    ],
)
def test_a_place_that_names_aws_is_found(tmp_path: Path, planted: str) -> None:
    file = tmp_path / "planted.py"
    file.write_text(planted)
    assert names_aws(file)


def test_a_word_that_only_looks_like_a_cloud_s_is_not_found(tmp_path: Path) -> None:
    file = tmp_path / "planted.py"
    file.write_text('"""Unlike AWS."""\n# not AWS\nraws = draws = weeks = 1\n')
    assert not names_aws(file)
