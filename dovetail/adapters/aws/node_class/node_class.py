"""An EC2NodeClass as the adapter uses it: read once per version of the object.

The spec is the checked model of api/; the status is what upkeep has written, so that every worker launches into the
same subnets with the same images. A class that cannot be read counts as not ready, with the reason.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from dovetail.adapters.aws import names
from dovetail.adapters.aws.node_class.conditions import why_not_ready
from dovetail.adapters.aws.node_class.kubelet_fields import misfits
from dovetail.adapters.kubernetes_json.parsing.class_hashes import ami_family, ec2_node_class_hash
from dovetail.api.aws.ec2_node_class import RESERVED_TAGS, EC2NodeClass, EC2NodeClassSpec
from dovetail.api.aws.ec2_node_class_status import EC2NodeClassStatus
from dovetail.api.validation import InvalidObject, parse
from dovetail.model.nodes import NodeClassRef
from dovetail.model.pods import Expression
from dovetail.model.scheduling.requirements import RequirementSet, conflicts, from_expressions
from dovetail.model.values.hashing import versioned
from dovetail.model.values.json import Json
from dovetail.ports.cloud import NodeClassState

UNREADABLE: Final = "Unreadable"

RawClasses = Callable[[], Mapping[str, Any]]  # the raw objects by name, from a watch-fed cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """One entry of status.amis."""

    id: str
    name: str
    requirements: RequirementSet


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeClass:
    name: str
    uid: str
    generation: int
    resource_version: str
    deleting: bool
    annotations: Mapping[str, str]
    finalizers: tuple[str, ...]
    raw: Json
    spec: EC2NodeClassSpec
    status: EC2NodeClassStatus
    family: str  # in effect: the field, else the alias's, else Custom (AWS-14)
    images: tuple[Image, ...] = ()
    zone_ids: Mapping[str, str] = field(default_factory=dict)
    _hashes: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def raw_spec(self) -> Json:
        """spec as written."""
        found: Json = self.raw.get("spec") or {}
        return found

    @property
    def own_annotations(self) -> tuple[tuple[str, str], ...]:
        """Those that are not written by us: with any change of them people ask for a new look at the class (AWS-41)."""
        return tuple(
            sorted(each for each in self.annotations.items() if each[0] not in (names.HASH, names.HASH_VERSION))
        )

    @property
    def kubelet(self) -> Json:
        """spec.kubelet, less what no kubelet could read: until that is put right, nothing is launched with it."""
        given = self.spec.kubelet or {}
        wrong = misfits(given)
        return {field: value for field, value in given.items() if field not in wrong}

    @property
    def alias_version(self) -> str:
        """The part after the @ of the alias; empty without one."""
        alias = next((term.alias for term in self.spec.ami_selector_terms if term.alias), "")
        return alias.partition("@")[2]

    @property
    def security_groups(self) -> tuple[str, ...]:
        return tuple(group.id for group in self.status.security_groups or ())

    @property
    def state(self) -> NodeClassState:
        """What pools and launches need to know of it (NPL-15, AWS-75)."""
        ready = next((c for c in self.status.conditions or () if c.type == "Ready"), None)
        parts = [(c.type, c.status, c.message) for c in self.status.conditions or ()]
        message = (why_not_ready(parts) or ready.message) if ready else "its resolution is awaited"
        return NodeClassState(
            found=True,
            deleting=self.deleting,
            ready="Unknown" if ready is None or self.stale else ready.status,
            reason="" if ready is None else ready.reason,
            message="its latest change has not been looked at yet" if self.stale else message,
            generation=self.generation,
            version=str(self.raw["metadata"].get("resourceVersion", "")),
            makes=self._makes,
        )

    @property
    def _makes(self) -> str:
        """A digest of the static fields and the images in their order; empty until both are looked up."""
        stamp = self.annotations.get(names.HASH, "")
        if self.stale or not stamp or not self.images:
            return ""
        text = hashlib.sha256("/".join([stamp, *[image.id for image in self.images]]).encode()).hexdigest()[:16]
        return versioned(text, self.annotations.get(names.HASH_VERSION, ""), "v6")

    @property
    def stale(self) -> bool:
        """Whether the status belongs to an older spec."""
        ready = next((c for c in self.status.conditions or () if c.type == "Ready"), None)
        return ready is not None and (ready.observed_generation or 0) != self.generation

    def hash(self, ca_bundle: str) -> str:
        """The structural hash (AWS-116), worked out once."""
        if ca_bundle not in self._hashes:
            self._hashes[ca_bundle] = ec2_node_class_hash(self.raw_spec, ca_bundle)
        return self._hashes[ca_bundle]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableClass:
    """A class that breaks the rules of its kind: the API server would have refused it."""

    name: str
    message: str
    raw: Json

    @property
    def version(self) -> str:
        return str((self.raw.get("metadata") or {}).get("resourceVersion", ""))


def read_class(raw: Json) -> NodeClass | UnreadableClass:
    meta = raw.get("metadata") or {}
    name = str(meta.get("name", ""))
    try:
        spec = _without_forbidden_tags(raw.get("spec") or {})
        model = parse(EC2NodeClass, {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", **raw, "spec": spec})
    except InvalidObject as error:
        return UnreadableClass(name=name, message=str(error), raw=raw)
    status = model.status or EC2NodeClassStatus()
    return NodeClass(
        name=name,
        uid=str(meta.get("uid", "")),
        generation=int(meta.get("generation", 0)),
        resource_version=str(meta.get("resourceVersion", "")),
        deleting="deletionTimestamp" in meta,
        annotations=meta.get("annotations") or {},
        finalizers=tuple(meta.get("finalizers") or ()),
        raw=raw,
        spec=model.spec,
        status=status,
        family=ami_family(raw.get("spec") or {}),
        images=tuple(_image(ami) for ami in status.amis or ()),
        zone_ids={s.zone: s.zone_id for s in status.subnets or () if s.zone_id},
    )


def _without_forbidden_tags(spec: Any) -> Any:
    """Such a class can be read, judged and cleaned up after; validation refuses it by its tags as written (AWS-41)."""
    tags = spec.get("tags") if isinstance(spec, dict) else None
    if not isinstance(tags, dict) or not any(is_forbidden_tag(str(key)) for key in tags):
        return spec
    return {**spec, "tags": {key: value for key, value in tags.items() if not is_forbidden_tag(str(key))}}


def is_forbidden_tag(key: str) -> bool:
    """A tag that only the product sets (AWS-8)."""
    return key in RESERVED_TAGS or key.startswith("kubernetes.io/cluster/")


def _image(ami: Any) -> Image:
    expressions = [Expression(key=r.key, operator=r.operator, values=tuple(r.values or ())) for r in ami.requirements]
    return Image(id=ami.id, name=ami.name or "", requirements=from_expressions(expressions))


def image_for(images: Iterable[Image], requirements: RequirementSet) -> str | None:
    """The first of the images that suits a type with these requirements; None if none does."""
    return next((image.id for image in images if not conflicts(requirements, image.requirements)), None)


class _Read(NamedTuple):
    """A class, and the version of the object that it was read from."""

    version: str
    node_class: NodeClass | UnreadableClass


class NodeClasses:
    """The classes of the cluster by name, each read once per version."""

    def __init__(self, raw: RawClasses) -> None:
        self._raw = raw
        self._read: dict[str, _Read] = {}

    def get(self, name: str) -> NodeClass | UnreadableClass | None:
        raw = self._raw().get(name)
        return None if raw is None else self._once(name, raw)

    def every(self) -> list[NodeClass | UnreadableClass]:
        return [self._once(name, raw) for name, raw in sorted(self._raw().items())]

    def state(self, reference: NodeClassRef) -> NodeClassState:
        """The state of a class, as ports ask for it."""
        found = self.get(reference.name)
        if found is None:
            return NodeClassState(found=False)
        if isinstance(found, UnreadableClass):
            return NodeClassState(found=True, ready="False", reason=UNREADABLE, message=found.message)
        return found.state

    def _once(self, name: str, raw: Json) -> NodeClass | UnreadableClass:
        version = str((raw.get("metadata") or {}).get("resourceVersion", ""))
        before = self._read.get(name)
        if before is not None and version and before.version == version:
            return before.node_class
        found = read_class(raw)
        self._read[name] = _Read(version, found)
        return found
