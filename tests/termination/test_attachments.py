"""TRM-31: which attached volumes hold a node; TRM-7 and TRM-11: what it says while it leaves."""

from dovetail.model import names
from dovetail.model.objects.workloads import Volume, VolumeAttachment, VolumeClaim
from dovetail.model.pods import VolumeUse
from dovetail.model.scheduling.taints import Taint
from dovetail.termination.attachments import holding, volume_claim_keys
from dovetail.termination.leaving import LEAVING_TAINT, finalizers_left, leaving_labels, leaving_taints
from tests.lifecycle.objects import EVERYTHING, a_web_pod
from worlds.disruption import a_node

NOW = 1000.0


def attached(volume: str) -> VolumeAttachment:
    return VolumeAttachment(name=f"attachment-{volume}", node_name="node-1", volume_name=volume)


def test_only_volumes_of_pods_that_stay_are_looked_up() -> None:
    """TRM-31: also those made for the pod itself."""
    stays = a_web_pod(
        "stays",
        tolerations=(EVERYTHING,),
        volumes=(VolumeUse(claim_name="data"), VolumeUse(claim_name="scratch", ephemeral=True)),
    )
    goes = a_web_pod("goes", volumes=(VolumeUse(claim_name="other"),))

    assert volume_claim_keys((stays, goes), NOW) == ("apps/data", "apps/stays-scratch")


def test_volumes_of_pods_that_stay_and_attachments_without_a_volume_hold_nothing() -> None:
    """TRM-31, BEH-26."""
    attachments = (attached("pv-2"), attached("pv-1"), attached(""))

    claim = VolumeClaim(name="data", namespace="apps", uid="uid-data", volume_name="pv-1")

    held = holding(attachments, [(claim, Volume(name="pv-1", claim_uid="uid-data")), (claim, None)])

    assert [attachment.volume_name for attachment in held] == ["pv-2"]


def test_volumes_of_pods_that_have_ended_hold_the_node() -> None:
    """TRM-31: ended pods count as drainable."""
    assert volume_claim_keys((a_web_pod(phase="Succeeded", volumes=(VolumeUse(claim_name="data"),)),), NOW) == ()


def test_the_taint_replaces_one_of_the_same_key_with_another_effect() -> None:
    """TRM-7."""
    other = Taint(key=names.DISRUPTED_TAINT, effect="NoExecute")
    kept = Taint(key="a", effect="NoSchedule")

    assert leaving_taints(a_node(taints=(other, kept))) == (kept, LEAVING_TAINT)
    assert leaving_taints(a_node(taints=(LEAVING_TAINT, kept))) is None


def test_the_node_leaves_external_load_balancers() -> None:
    """TRM-7."""
    labels = {"node.kubernetes.io/exclude-from-external-load-balancers": "karpenter"}

    assert leaving_labels(a_node()) == labels
    assert leaving_labels(a_node(labels=labels)) == {}


def test_only_our_finalizer_is_taken_off() -> None:
    """TRM-11."""
    assert finalizers_left(("a/b", names.TERMINATION_FINALIZER)) == ("a/b",)
    assert finalizers_left(("a/b",)) is None
