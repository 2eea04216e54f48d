"""The charts render with what people give them, refuse what cannot work, and give a worker what it reads."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.charts.table import rows_of, with_table
from dovetail.adapters.aws.environment import AwsEnvironment
from dovetail.messages.workflow_types import GATE
from dovetail.model.values.setting_texts import seconds_of
from dovetail.settings.settings import Settings, read_settings
from dovetail.worker.start_report import in_effect, start_report
from dovetail.worker.task_queues import WORKFLOWS
from testbed.plane import TestbedUnavailable
from testbed.plane.helm import find_helm
from tests.packaging.charts import (
    DEFINITIONS,
    KARPENTERS,
    KARPENTERS_DEFAULTS,
    ROOT,
    VARIANTS,
    WORKERS,
    WRONG,
    Helm,
    Object,
    named,
    pod_of,
    variables_of,
)
from tests.unavailable import no_control_plane

WITHOUT_A_VALUE = {
    # Of commands, of tests, and of a worker that is no pod.
    *("DOVETAIL_CONTEXT", "DOVETAIL_SERVICE", "DOVETAIL_WORLD", "KUBECONFIG"),
    # Set by temporal-worker-controller.
    *("TEMPORAL_DEPLOYMENT_NAME", "TEMPORAL_WORKER_BUILD_ID"),
    # For controller.env, as those of OpenTelemetry are: few set them.
    *("LOG_FORMAT", "DOVETAIL_ROLES", "AWS_REGION", "AWS_ENDPOINT_URL", "SCHEDULER_CONFIG"),
    "LEADER_ELECTION_NAMESPACE",
}
WITH_SECRETS = {
    "temporal": {
        "apiKeySecret": {"name": "temporal"},
        "codec": {"factory": "dovetail.codecs.aes_gcm:from_folder", "keysSecret": "codec-keys"},
    },
    "prometheus": {"tokenSecret": {"name": "prometheus"}, "caSecret": {"name": "prometheus"}},
}
NAMED = {"settings": {"clusterName": "blue"}}
ANOTHER = {"serviceAccount": {"name": "another"}}

pytestmark = pytest.mark.slow


@pytest.fixture
def helm(tmp_path: Path) -> Helm:
    """Built from its Go module where it is not there."""
    try:
        return Helm(program=find_helm(lambda _line: None), folder=tmp_path)
    except TestbedUnavailable as reason:
        no_control_plane(reason)


@pytest.mark.parametrize("chart", [WORKERS, DEFINITIONS], ids=lambda chart: chart.name)
def test_the_table_of_values_is_that_of_the_values(chart: Path) -> None:
    page = (chart / "README.md").read_text()

    assert page == with_table(page, chart / "values.yaml"), "run: python -m deploy.charts.table"
    assert [row.key for row in rows_of(chart / "values.yaml") if not row.words] == []


@pytest.mark.cluster
class TestRendering:
    """What helm makes of the charts."""

    def test_lint_finds_nothing_wrong(self, helm: Helm) -> None:
        done = helm.run("lint", "--strict", str(WORKERS), str(DEFINITIONS))

        assert done.returncode == 0, done.stdout
        assert "found symbolic link" not in done.stderr

    def test_with_the_defaults_a_worker_gets_settings_that_it_reads(self, helm: Helm) -> None:
        pod = pod_of(helm.rendered({}))
        variables = variables_of(pod)

        settings = read_settings(variables)
        silent = {name: value for name, value in variables.items() if name in _ALIASES}
        assert (settings.metrics_port, settings.health_port, settings.api_port) == (8080, 8081, 8082)
        defaults = read_settings({})
        changed = {"metrics_port", "health_port", "api_port", "listen_address", "of_cloud"}
        same = [name for name in Settings.model_fields if name not in changed]
        assert {name: getattr(settings, name) for name in same} == {name: getattr(defaults, name) for name in same}
        assert settings.of_cloud == defaults.of_cloud
        assert set(variables) - set(silent) == {"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE"}  # read by Temporal's SDK

    @pytest.mark.parametrize("name", ["the defaults", *VARIANTS])
    def test_what_each_variable_says_is_what_the_worker_takes(self, helm: Helm, name: str) -> None:
        """The worker takes an empty variable for one that is not set: where its default is not empty, the chart's word
        would be dropped without a sound."""
        kind = "WorkerDeployment" if name == "versions by the controller" else "Deployment"
        kind = "TemporalWorkerDeployment" if name == "versions by a controller before 1.7" else kind
        said = variables_of(pod_of(helm.rendered({**NAMED, **VARIANTS.get(name, {})}), kind))

        settings = read_settings(said)
        taken = dict(in_effect(settings))
        known = {field.alias for model in (settings, settings.of_cloud) for field in type(model).model_fields.values()}
        assert settings.listens_on is None, "a kubelet asks at the pod's address, of whichever family"
        dropped = {one: (text, taken.get(one, "")) for one, text in said.items() if one in known}
        assert {one: pair for one, pair in dropped.items() if not _same(*pair)} == {}

    def test_with_karpenters_values_everything_is_taken_or_named(self, helm: Helm) -> None:
        objects = helm.rendered({}, "--values", str(KARPENTERS))
        pod = pod_of(objects)

        settings = read_settings(variables_of(pod))
        assert (settings.cluster, settings.batch_idle) == ("blue", 2.0)  # a variable of controller.env goes first
        assert settings.gates["NodeRepair"] and settings.gates["SpotToSpotConsolidation"]
        assert settings.of_cloud.interruption_queue == "blue" and settings.of_cloud.eks_control_plane
        assert (settings.of_cloud.image_refresh, settings.of_cloud.subnet_refresh) == (120.0, 180.0)
        assert settings.of_cloud.security_group_refresh == 240.0
        assert settings.of_cloud.gates == {"LaunchGroups": False, "NodeClassCEL": True, "RebootForRepair": False}
        assert named(objects, "ServiceMonitor")["spec"]["sampleLimit"] == 5000
        assert pod["serviceAccountName"] == "karpenter"
        assert not pod["containers"][0]["image"].startswith("example.com/mirror")
        assert pod["terminationGracePeriodSeconds"] == 60
        assert [one["name"] for one in pod["containers"]] == ["controller", "beside"]
        assert pod["containers"][1]["volumeMounts"] == [
            {"name": "more", "mountPath": "/more", "readOnly": True},
            {"name": "more", "mountPath": "/mine"},
        ]
        [term] = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert term["labelSelector"]["matchLabels"]["app.kubernetes.io/component"] == "worker"
        assert named(objects, "PodDisruptionBudget")

    @pytest.mark.parametrize("settings", [{}, {"ignoreDRARequests": True}], ids=["of 1.15", "of 1.14"])
    def test_with_karpenters_defaults_a_worker_has_its_own(self, helm: Helm, settings: dict[str, Any]) -> None:
        values = {"settings": settings, "serviceAccount": {"name": "dovetail"}}
        defaults, theirs = helm.rendered({}), helm.rendered(values, "--values", str(KARPENTERS_DEFAULTS))

        assert variables_of(pod_of(theirs)) == variables_of(pod_of(defaults))
        assert read_settings(variables_of(pod_of(theirs))).of_cloud.gates == {
            "LaunchGroups": False,
            "NodeClassCEL": False,
            "RebootForRepair": False,
        }

    @pytest.mark.parametrize(
        ("settings", "ignored"),
        [({}, True), ({"enableDRA": True}, False), ({"enableDRA": False, "ignoreDRARequests": False}, False)],
        ids=["neither", "of 1.15", "of 1.14"],
    )
    def test_resource_claims_are_ignored_unless_karpenters_value_of_either_version_says_otherwise(
        self, helm: Helm, settings: dict[str, bool], ignored: bool
    ) -> None:
        found = helm.rendered({**NAMED, "settings": {**NAMED["settings"], **settings}})

        assert read_settings(variables_of(pod_of(found))).ignore_devices is ignored

    def test_open_gates_of_karpenters_reach_the_worker_as_karpenter_spells_them_and_it_knows_them(
        self, helm: Helm
    ) -> None:
        of_aws = {"draNVIDIAGPU": True, "draEFA": True}
        gates = {"featureGates": {"terminateFirstDrift": True, "nodeRepair": True}, "awsFeatureGates": of_aws}
        given = {**NAMED["settings"], **gates, "legacyNodeRepair": True}

        variables = variables_of(pod_of(helm.rendered({**NAMED, "settings": given})))

        read = read_settings(variables)
        assert (read.gates["TerminateFirstDrift"], read.legacy_repair, read.repairs_by_disruption) == (
            True,
            True,
            False,
        )
        said = [text for _, text in start_report(read_settings(variables), variables) if "has no effect" in text]
        assert [text.partition(" has no effect: ")[0] for text in said] == [
            "AWS_FEATURE_GATES: DRAEFA=true",
            "AWS_FEATURE_GATES: DRANVIDIAGPU=true",
        ]

    @pytest.mark.parametrize("name", VARIANTS)
    def test_a_variant_renders(self, helm: Helm, name: str) -> None:
        objects = helm.rendered({**NAMED, **VARIANTS[name]})

        kinds = {one["kind"] for one in objects}
        assert {"ServiceAccount", "ClusterRoleBinding", "RoleBinding", "PodDisruptionBudget"} - kinds <= {
            "ServiceAccount"
        }
        assert kinds & {"Deployment", "WorkerDeployment", "TemporalWorkerDeployment"}
        for one in objects:
            assert one["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm", one["metadata"]["name"]

    @pytest.mark.parametrize(("values", "words"), WRONG, ids=[words for _, words in WRONG])
    def test_a_wrong_value_is_refused_by_its_name(self, helm: Helm, values: dict[str, Any], words: str) -> None:
        done = helm.tried(values)

        assert done.returncode != 0
        assert words in done.stderr, done.stderr
        assert "nil pointer" not in done.stderr

    @pytest.mark.parametrize("number", [0, 999_999, 1_000_000, 12_345_678])
    def test_a_large_number_reaches_the_worker_as_it_was_written(self, helm: Helm, number: int) -> None:
        names = {
            "claimsPerPod": "DOVETAIL_CLAIMS_PER_POD",
            "brakeLaunches": "DOVETAIL_BRAKE_LAUNCHES",
            "brakeDollarsPerHour": "DOVETAIL_BRAKE_DOLLARS_PER_HOUR",
            "nodeCost": "DOVETAIL_NODE_COST",
            "flightsMegabytes": "DOVETAIL_FLIGHTS_MEGABYTES",
        }
        given = {"dovetail": {**dict.fromkeys(names, number), "flightsMegabytes": number or 1}}
        objects = helm.rendered(
            {**given, "settings": {"reservedENIs": number}, "serviceMonitor": {"enabled": True, "sampleLimit": number}}
        )

        written = variables_of(pod_of(objects))
        assert {key: written[name] for key, name in names.items()} == {k: str(v) for k, v in given["dovetail"].items()}
        assert written["RESERVED_ENIS"] == str(number)
        assert named(objects, "ServiceMonitor")["spec"].get("sampleLimit", 0) == number
        fraction = helm.rendered({"dovetail": {"nodeCost": 0.05}, "settings": {"reservedENIs": "3"}})
        assert variables_of(pod_of(fraction))["DOVETAIL_NODE_COST"] == "0.05"
        assert variables_of(pod_of(fraction))["RESERVED_ENIS"] == "3"

    def test_files_of_secrets_are_where_the_variables_say(self, helm: Helm) -> None:
        for name in VARIANTS:
            for one in helm.rendered({**NAMED, **VARIANTS[name]}):
                pod = one.get("spec", {}).get("template", {}).get("spec")
                if pod is None:
                    continue
                mounts = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
                volumes = {volume["name"] for volume in pod.get("volumes", [])}
                volumes |= {claim["metadata"]["name"] for claim in one["spec"].get("volumeClaimTemplates", [])}
                assert set(mounts) == volumes, name
                paths = [
                    variable["value"]
                    for variable in pod["containers"][0]["env"]
                    if variable.get("value", "").startswith("/etc/")
                ]
                assert all(any(path.startswith(mount) for mount in mounts.values()) for path in paths), (name, paths)

    def test_with_the_controller_its_variables_are_left_to_it(self, helm: Helm) -> None:
        objects = helm.rendered({**NAMED, **VARIANTS["versions by the controller"]})
        variables = variables_of(pod_of(objects, "WorkerDeployment"))

        assert not {"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "TEMPORAL_DEPLOYMENT_NAME"} & set(variables)
        assert named(objects, "Connection")["spec"]["mutualTLSSecretRef"] == {"name": "client"}
        worker = named(objects, "WorkerDeployment")["spec"]
        assert worker["workerOptions"] == {"connectionRef": {"name": "dovetail"}, "temporalNamespace": "dovetail"}
        assert [step["rampPercentage"] for step in worker["rollout"]["steps"]] == [10, 50]
        assert worker["rollout"]["gate"] == {"workflowType": GATE} and GATE in {one.__name__ for one in WORKFLOWS}
        assert not [one for one in objects if one["kind"] == "Deployment"]

    def test_a_collector_is_told_of_by_its_address_and_the_headers_of_a_secret(self, helm: Helm) -> None:
        pod = pod_of(helm.rendered({**NAMED, **VARIANTS["a collector"]}))

        settings = read_settings(variables_of(pod))
        assert settings.sends_traces and settings.sends_logs and settings.sends_metrics
        [headers] = [one for one in pod["containers"][0]["env"] if one["name"] == "OTEL_EXPORTER_OTLP_HEADERS"]
        assert headers["valueFrom"] == {"secretKeyRef": {"name": "collector", "key": "auth"}}

    def test_a_record_a_policy_and_a_shadow_are_settings_that_a_worker_reads(self, helm: Helm) -> None:
        kept, beside = (
            read_settings(variables_of(pod_of(helm.rendered({**NAMED, **VARIANTS[name]}))))
            for name in ("a record and decisions in a bucket, under the policy cost", "a shadow beside Karpenter")
        )
        assert (kept.record, kept.flights, kept.flight_megabytes) == ("s3://kept/dovetail", "s3://kept", 2000)
        assert (kept.placement_policy, kept.cost_seconds, kept.cost_worth, kept.node_cost) == ("Cost", 2.5, 0.35, 0.01)
        assert (beside.beside_karpenter, kept.beside_karpenter, kept.api) == (True, False, True)

    def test_every_setting_is_a_value_or_one_of_those_for_controller_env(self, helm: Helm) -> None:
        """A new setting is given its value, or its reason here."""
        [container] = pod_of(helm.rendered({**NAMED, **WITH_SECRETS}))["containers"]
        left = {name for name in _ALIASES - {one["name"] for one in container["env"]} if not name.startswith("OTEL_")}
        assert left == WITHOUT_A_VALUE

    def test_a_container_may_do_nothing_but_run(self, helm: Helm) -> None:
        for name in VARIANTS:
            for one in helm.rendered({**NAMED, **VARIANTS[name]}):
                for container in one.get("spec", {}).get("template", {}).get("spec", {}).get("containers", []):
                    security = container["securityContext"]
                    assert security["runAsUser"] == 65532 and security["runAsNonRoot"]
                    assert security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"]
                    assert security["capabilities"] == {"drop": ["ALL"]}

    def test_the_definitions_are_ours_and_stay_when_the_chart_goes(self, helm: Helm) -> None:
        objects = helm.rendered({"additionalAnnotations": {"a": "b"}}, chart=DEFINITIONS)

        written = [yaml.safe_load(file.read_text()) for file in sorted((ROOT / "deploy/crds").glob("*.yaml"))]
        assert [one["spec"] for one in objects] == [one["spec"] for one in written]
        for one in objects:
            assert one["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
            assert one["metadata"]["annotations"]["a"] == "b"

    def test_the_rights_are_those_of_the_plain_files(self, helm: Helm) -> None:
        objects = helm.rendered(NAMED)
        cluster, own, *guards = yaml.safe_load_all((ROOT / "deploy/kubernetes/rbac.yaml").read_text())

        assert named(objects, "ClusterRole")["rules"] == cluster["rules"]
        assert named(objects, "Role")["rules"] == own["rules"]
        assert named(objects, "Role")["metadata"]["namespace"] == "kube-system"
        ours = ["dovetail-node-status", "dovetail-specs"]
        assert [guard["metadata"]["name"] for guard in guards] == [name for name in ours for _ in range(2)]
        for guard in guards:
            assert named(objects, guard["kind"], guard["metadata"]["name"])["spec"] == guard["spec"]
        older = helm.rendered(NAMED, "--kube-version", "1.29.3")
        assert not [one for one in older if one["metadata"]["name"] in ours]

    @pytest.mark.parametrize(
        ("policy", "keep", "granted"), [("Default", True, False), ("Cost", True, True), ("Cost", False, False)]
    )
    def test_the_right_to_nominate_pods_is_given_where_the_policy_asks_for_it(
        self, helm: Helm, policy: str, keep: bool, granted: bool
    ) -> None:
        given = {"dovetail": {"placementPolicy": policy, "costKeepPlaces": keep}}
        self.assert_guarded(helm.rendered({**NAMED, **given, **ANOTHER}), "places", granted)

    @pytest.mark.parametrize("gate", [True, False])
    def test_the_right_to_annotate_pods_is_given_where_the_gate_asks_for_it(self, helm: Helm, gate: bool) -> None:
        given = {"settings": {**NAMED["settings"], "featureGates": {"podDeletionCostManagement": gate}}}
        self.assert_guarded(helm.rendered({**NAMED, **given, **ANOTHER}), "deletion-costs", gate)

    @staticmethod
    def assert_guarded(objects: list[Any], file: str, granted: bool) -> None:
        """The right comes with its policy, which concerns the ServiceAccount of this release."""
        role, policy, binding = yaml.safe_load_all((ROOT / f"deploy/kubernetes/{file}.yaml").read_text())
        [condition] = policy["spec"]["matchConditions"]
        condition["expression"] = condition["expression"].replace("kube-system:dovetail", "kube-system:another")
        [rule] = role["rules"]
        guards = [one for one in objects if one["metadata"]["name"] == f"dovetail-{file}"]
        assert (rule in named(objects, "ClusterRole")["rules"]) == granted
        assert [one["spec"] for one in guards] == ([policy["spec"], binding["spec"]] if granted else [])

    def test_moves_bring_their_right_and_the_policy_that_keeps_the_worker_to_it(self, helm: Helm) -> None:
        """Off by default. The policy concerns the ServiceAccount of this release."""
        objects = helm.rendered({**NAMED, **ANOTHER, "moves": {"enabled": True}})

        role, policy, binding = yaml.safe_load_all((ROOT / "deploy/kubernetes/moves.yaml").read_text())
        [condition] = policy["spec"]["matchConditions"]
        condition["expression"] = condition["expression"].replace("kube-system:dovetail", "kube-system:another")
        assert named(objects, "ClusterRole", "dovetail-moves")["rules"] == role["rules"]
        for one in (policy, binding):
            assert named(objects, one["kind"], "dovetail-moves")["spec"] == one["spec"]
        assert read_settings(variables_of(pod_of(objects))).moves
        assert not read_settings(variables_of(pod_of(helm.rendered(NAMED)))).moves
        assert not [one for one in helm.rendered(NAMED) if one["metadata"]["name"] == "dovetail-moves"]

    @pytest.mark.parametrize(
        ("given", "key"),
        [
            ({"moves": {"enabled": True}}, "moves.enabled"),
            ({"dovetail": {"placementPolicy": "Cost"}}, "dovetail.costKeepPlaces"),
            (
                {"settings": {"featureGates": {"podDeletionCostManagement": True}}},
                "settings.featureGates.podDeletionCostManagement",
            ),
        ],
    )
    def test_what_nothing_could_keep_the_worker_to_is_refused_by_its_name(
        self, helm: Helm, given: dict[str, Any], key: str
    ) -> None:
        """Kubernetes 1.29 takes none of these policies, and the installation would fail at it half-way."""
        done = helm.tried(given, "--kube-version", "1.29.3")
        assert (done.returncode, f"{key}: set it to false; " in done.stderr) == (1, True), done.stderr
        assert "needs Kubernetes 1.30, and this is v1.29.3" in done.stderr
        policy = {"dovetail": {"placementPolicy": "Cost", "costKeepPlaces": False}}
        older = [helm.rendered(policy, "--kube-version", "1.29.3"), helm.rendered(given, "--kube-version", "1.30.0")]
        assert [any(one["kind"].startswith("ValidatingAdmission") for one in found) for found in older] == [False, True]

    def test_who_pauses_is_kept_to_it_where_the_api_server_can(self, helm: Helm) -> None:
        role, policy, binding, _ = yaml.safe_load_all((ROOT / "deploy/kubernetes/operators.yaml").read_text())
        objects = helm.rendered(NAMED)

        assert named(objects, "ClusterRole", "dovetail-operator")["rules"] == role["rules"]
        for one in (policy, binding):
            assert named(objects, one["kind"], "dovetail-orders")["spec"] == one["spec"]
        for given, *older in (({}, "--kube-version", "1.29.3"), ({"operatorRole": {"create": False}},)):
            rendered = helm.rendered({**NAMED, **given}, *older)
            assert not [one for one in rendered if one["metadata"]["name"] == "dovetail-orders"]

    def test_who_freezes_has_a_role_that_does_nothing_else(self, helm: Helm) -> None:
        role = yaml.safe_load((ROOT / "deploy/kubernetes/freezers.yaml").read_text())
        people = [{"kind": "Group", "name": "on-call", "apiGroup": "rbac.authorization.k8s.io"}]
        objects = helm.rendered({**NAMED, "freezerRole": {"subjects": people}})

        assert named(objects, "ClusterRole", "dovetail-freezer")["rules"] == role["rules"]
        assert [rule["resources"] for rule in role["rules"]] == [["freezes"]]
        binding = named(objects, "ClusterRoleBinding", "dovetail-freezer")
        assert (binding["roleRef"]["name"], binding["subjects"]) == ("dovetail-freezer", people)
        without = helm.rendered({**NAMED, "freezerRole": {"create": False}})
        assert not [one for one in without if one["metadata"]["name"] == "dovetail-freezer"]

    def test_who_approves_does_so_in_their_own_name_where_the_api_server_can(self, helm: Helm) -> None:
        role, policy, binding = yaml.safe_load_all((ROOT / "deploy/kubernetes/approvals.yaml").read_text())
        objects = helm.rendered(NAMED)

        assert named(objects, "ClusterRole", "dovetail-approver")["rules"] == role["rules"]
        for one in (policy, binding):
            assert named(objects, one["kind"], "dovetail-approvals")["spec"] == one["spec"]
        for given, *older in (({}, "--kube-version", "1.29.3"), ({"approverRole": {"create": False}},)):
            rendered = helm.rendered({**NAMED, **given}, *older)
            assert not [one for one in rendered if one["metadata"]["name"] == "dovetail-approvals"]

    def test_the_temporal_of_a_trial_is_for_the_workers_alone(self, helm: Helm) -> None:
        objects = helm.rendered({**NAMED, "temporal": {"mode": "dev"}})

        policy = named(objects, "NetworkPolicy", "dovetail-temporal")["spec"]
        pods, workers = named(objects, "StatefulSet", "dovetail-temporal"), named(objects, "Deployment")
        assert policy["podSelector"]["matchLabels"] == pods["spec"]["template"]["metadata"]["labels"]
        [rule] = policy["ingress"]
        [peer] = rule["from"]
        assert peer == {"podSelector": {"matchLabels": workers["spec"]["template"]["metadata"]["labels"]}}
        assert [each["port"] for each in rule["ports"]] == ["grpc"]
        off = helm.rendered({**NAMED, "temporal": {"mode": "dev"}, "networkPolicy": {"enabled": False}})
        assert not [one for one in off if one["kind"] == "NetworkPolicy"]

    def test_workers_that_are_not_ready_are_asked_all_the_same(self, helm: Helm) -> None:
        plain = yaml.safe_load((ROOT / "deploy/kubernetes/service.yaml").read_text())

        for one in (plain, named(helm.rendered(NAMED), "Service")):
            assert one["spec"]["publishNotReadyAddresses"] is True

    def test_probes_metrics_and_questions_have_a_port_each(self, helm: Helm) -> None:
        """OPS-7. Who may ask is looked at by the worker; everybody where the cloud is for trials."""
        objects = helm.rendered({**NAMED, "dovetail": {"apiFrom": ["10.0.0.0/8", "ops.example"]}})

        ports = {one["name"]: one["containerPort"] for one in pod_of(objects)["containers"][0]["ports"]}
        assert ports == {"http-metrics": 8080, "http-api": 8082, "http": 8081}
        assert [one["targetPort"] for one in named(objects, "Service")["spec"]["ports"]] == ["http-metrics", "http-api"]
        policy = named(objects, "NetworkPolicy")["spec"]["ingress"]
        assert {port["port"] for rule in policy for port in rule["ports"]} == set(ports)
        assert read_settings(variables_of(pod_of(objects))).api_from == ("10.0.0.0/8", "ops.example")
        assert read_settings(variables_of(pod_of(helm.rendered(NAMED)))).api_from == ()
        trial = read_settings(variables_of(pod_of(helm.rendered({**NAMED, "cloud": "kwok"}))))
        assert trial.api_from == ("0.0.0.0/0", "::/0")
        without = helm.rendered({**NAMED, "dovetail": {"api": False}})
        assert "http-api" not in json.dumps([pod_of(without)["containers"][0]["ports"], named(without, "Service")])

    def test_with_kwok_a_worker_gets_that_cloud_and_the_right_to_make_nodes(self, helm: Helm) -> None:
        objects = helm.rendered({**NAMED, "cloud": "kwok"})

        settings = read_settings(variables_of(pod_of(objects)))
        rules = yaml.safe_load((ROOT / "deploy/kubernetes/kwok.yaml").read_text())["rules"]
        assert (settings.cloud, settings.of_cloud) == ("kwok", settings.provider.settings())
        assert [rule for rule in rules if rule not in named(objects, "ClusterRole")["rules"]] == []
        assert not any("create" in rule["verbs"] for rule in nodes_of(helm.rendered(NAMED)))

    def test_the_guides_commands_for_kind_install_what_a_worker_reads(self, helm: Helm) -> None:
        """The two `helm install` of the guide, with the charts and values that stand there."""
        guide = (ROOT / "docs/guides/try-it-on-kind.md").read_text()
        definitions, workers = [line.split() for line in guide.splitlines() if line.startswith("helm install")]
        assert ROOT / definitions[3] == DEFINITIONS and ROOT / workers[3] == WORKERS

        given = [word for word in workers[4:] if "=" in word or word == "--set"]
        objects = helm.rendered({}, *given)

        settings = read_settings(variables_of(pod_of(objects)))
        assert (settings.cloud, settings.cluster) == ("kwok", "kind")
        assert named(objects, "StatefulSet", "dovetail-temporal")

    def test_alerts_and_dashboards_are_those_of_deploy(self, helm: Helm) -> None:
        """With the address at which people read the runbooks before each."""
        base = "https://example.com/dovetail/"
        given = {"alerts": {"enabled": True, "runbookBase": base}, "dashboards": {"enabled": True}}
        objects = helm.rendered({**NAMED, **given})

        own = yaml.safe_load((ROOT / "deploy" / "alerts" / "dovetail.yaml").read_text())
        for rule in own["groups"][0]["rules"]:
            rule["annotations"]["runbook_url"] = base + rule["annotations"]["runbook_url"]
        assert named(objects, "PrometheusRule")["spec"] == own
        shown = named(objects, "ConfigMap", "dovetail-dashboards")["data"]
        files = sorted((ROOT / "deploy" / "dashboards").glob("*.json"))
        assert len(files) == 6
        assert {name: json.loads(text) for name, text in shown.items()} == {
            f"dovetail-{file.name}": json.loads(file.read_text()) for file in files
        }


def _same(said: str, taken: str) -> bool:
    """Whether the worker's word for a setting is the chart's: `1.0` is 1, `1m` is 60, and gates come with the rest."""
    if said.lower() == taken or set(said.split(",")) <= set(taken.split(",")):
        return True
    try:
        return float(seconds_of(said) if said[-1:].isalpha() else said) == float(taken)
    except ValueError:
        return False


def nodes_of(objects: list[Object]) -> list[Object]:
    """The rules about Nodes."""
    return [rule for rule in named(objects, "ClusterRole")["rules"] if "nodes" in rule["resources"]]


def _aliases() -> frozenset[str]:
    fields = [*Settings.model_fields.values(), *AwsEnvironment.model_fields.values()]
    return frozenset(field.alias for field in fields if field.alias)


_ALIASES = _aliases()
