"""What is accepted and refused of an EC2NodeClass's identity and selectors (AWS-9 to AWS-16); see case.py."""

from tests.api.case import MATCH, REQUIRED, At, Case, one, vary
from tests.api.manifests import REMOVED, Manifest, a_node_class, changed

AT_LEAST_ONE = "expected at least one, got none, "
EMPTY_TAG = "empty tag keys or values aren't supported"
SUBNETS, GROUPS, AMIS = "spec.subnetSelectorTerms", "spec.securityGroupSelectorTerms", "spec.amiSelectorTerms"
RESERVATIONS = "spec.capacityReservationSelectorTerms"
GROUP = "spec.placementGroupSelector"
MANY_TAGS = {f"k{index}": "v" for index in range(21)}


def _of_family() -> Manifest:
    """A class without alias: images by id, the family said."""
    return changed(changed(a_node_class(), "spec.amiFamily", "AL2023"), AMIS, one(id="ami-1"))


def _with_profile() -> Manifest:
    return changed(changed(a_node_class(), "spec.role", REMOVED), "spec.instanceProfile", "profile")


ONE_IDENTITY = "must specify exactly one of ['role', 'instanceProfile']"
IDENTITY = [
    Case(cites="AWS-9", what="with nothing but what is required", manifest=a_node_class()),
    Case(cites="AWS-9", what="with a profile instead of a role", manifest=_with_profile()),
    *vary("AWS-9", a_node_class, "spec.role", At("spec", ONE_IDENTITY), {"neither role nor profile": REMOVED}),
    *vary("AWS-9", a_node_class, "spec.instanceProfile", At("spec", ONE_IDENTITY), {"role and profile": "profile"}),
    *vary("AWS-9", a_node_class, "spec.role", "role cannot be empty", {"an empty role": ""}),
    *vary("AWS-9", _with_profile, "spec.instanceProfile", "instanceProfile cannot be empty", {"an empty profile": ""}),
]

NO_OTHER_GROUP_FIELD = (
    "is mutually exclusive, cannot be set with a combination of other fields in a security group selector term"
)
SELECTORS = [
    *(
        case
        for path in (SUBNETS, GROUPS, AMIS)
        for case in vary("AWS-9", a_node_class, path, REQUIRED, {f"without {path}": REMOVED})
    ),
    *vary("AWS-10", a_node_class, SUBNETS, "", {"a subnet id": one(id="subnet-12"), "any tag": one(tags={"a": "*"})}),
    *vary("AWS-10", a_node_class, SUBNETS, "", {"30 terms": [{"id": "subnet-1"}] * 30}),
    *vary("AWS-10", a_node_class, SUBNETS, "at most 30 items", {"31 subnet terms": [{"id": "subnet-1"}] * 31}),
    *vary("AWS-10", a_node_class, SUBNETS, "subnetSelectorTerms cannot be empty", {"no subnet terms": []}),
    *vary("AWS-10", a_node_class, SUBNETS, AT_LEAST_ONE + "['tags', 'id']", {"an empty subnet term": [{}]}),
    *vary(
        "AWS-10",
        a_node_class,
        SUBNETS,
        "'id' is mutually exclusive, cannot be set with a combination of other fields in a subnet selector term",
        {"subnet id and tags": one(id="subnet-1", tags={"a": "b"})},
    ),
    *vary("AWS-10", a_node_class, SUBNETS, At(f"{SUBNETS}[0].id", MATCH), {"a wrong subnet id": one(id="net-1")}),
    *vary(
        "AWS-10",
        a_node_class,
        SUBNETS,
        At(f"{SUBNETS}[0].tags", EMPTY_TAG),
        {"an empty tag key": one(tags={"": "a"}), "an empty tag value": one(tags={"a": ""})},
    ),
    *vary("AWS-10", a_node_class, SUBNETS, At(f"{SUBNETS}[0].tags", "at most 20"), {"21 tags": one(tags=MANY_TAGS)}),
    *vary("AWS-11", a_node_class, GROUPS, "", {"a group id": one(id="sg-12"), "a group name": one(name="nodes")}),
    *vary("AWS-11", a_node_class, GROUPS, "securityGroupSelectorTerms cannot be empty", {"no group terms": []}),
    *vary("AWS-11", a_node_class, GROUPS, AT_LEAST_ONE + "['tags', 'id', 'name']", {"an empty group term": [{}]}),
    *vary(
        "AWS-11",
        a_node_class,
        GROUPS,
        f"'id' {NO_OTHER_GROUP_FIELD}",
        {"group id and tags": one(id="sg-1", tags={"a": "b"}), "group id and name": one(id="sg-1", name="nodes")},
    ),
    *vary(
        "AWS-11",
        a_node_class,
        GROUPS,
        f"'name' {NO_OTHER_GROUP_FIELD}",
        {"group name and tags": one(name="nodes", tags={"a": "b"})},
    ),
    *vary("AWS-11", a_node_class, GROUPS, At(f"{GROUPS}[0].id", MATCH), {"a wrong group id": one(id="group-1")}),
]

NO_OTHER_AMI_FIELD = "is mutually exclusive, cannot be set with a combination of other fields in amiSelectorTerms"
AMI_TERMS = [
    *vary(
        "AWS-12",
        _of_family,
        AMIS,
        "",
        {
            "an image name": one(name="x-*"),
            "an image name and its owner": one(name="x-*", owner="self"),
            "image tags": one(tags={"a": "b"}),
            "an SSM parameter": one(ssmParameter="/x/y"),
            "an id and an SSM parameter": one(id="ami-1", ssmParameter="/x/y"),
            "two terms": [{"id": "ami-1"}, {"id": "ami-2"}],
        },
    ),
    *vary("AWS-12", _of_family, AMIS, "at least 1 item", {"no image terms": []}),
    *vary(
        "AWS-12",
        _of_family,
        AMIS,
        AT_LEAST_ONE + "['tags', 'id', 'name', 'alias', 'ssmParameter']",
        {"an empty image term": [{}], "an owner alone": one(owner="self")},
    ),
    *vary(
        "AWS-12",
        _of_family,
        AMIS,
        f"'id' {NO_OTHER_AMI_FIELD}",
        {
            "image id and tags": one(id="ami-1", tags={"a": "b"}),
            "image id and name": one(id="ami-1", name="x"),
            "image id and owner": one(id="ami-1", owner="self"),
        },
    ),
    *vary(
        "AWS-12",
        a_node_class,
        AMIS,
        f"'alias' {NO_OTHER_AMI_FIELD}",
        {
            "alias and id": one(alias="al2023@latest", id="ami-1"),
            "alias and tags": one(alias="al2023@latest", tags={"a": "b"}),
            "alias and name": one(alias="al2023@latest", name="x"),
            "alias and owner": one(alias="al2023@latest", owner="self"),
        },
    ),
    *vary(
        "AWS-12",
        a_node_class,
        AMIS,
        "'alias' is mutually exclusive, cannot be set with a combination of other amiSelectorTerms",
        {"alias and another term": [{"alias": "al2023@latest"}, {"id": "ami-1"}]},
    ),
    *vary("AWS-12", _of_family, AMIS, At(f"{AMIS}[0].id", MATCH), {"a wrong image id": one(id="image-1")}),
    *vary(
        "AWS-13",
        a_node_class,
        AMIS,
        "",
        {
            alias: one(alias=alias)
            for alias in ("al2@latest", "al2023@v20240625", "bottlerocket@v1.10.0", "windows2025@latest")
        },
    ),
    *vary(
        "AWS-13",
        a_node_class,
        AMIS,
        At(f"{AMIS}[0].alias", "'alias' is improperly formatted, must match the format 'family@version'"),
        {f"alias {alias}": one(alias=alias) for alias in ("al2023", "al2023@", "@latest", "al-2023@latest")},
    ),
    *vary(
        "AWS-13",
        a_node_class,
        AMIS,
        At(
            f"{AMIS}[0].alias", "family is not supported, must be one of the following: 'al2', 'al2023', 'bottlerocket'"
        ),
        {f"alias {alias}": one(alias=alias) for alias in ("ubuntu@latest", "AL2023@latest")},
    ),
    *vary(
        "AWS-13",
        a_node_class,
        AMIS,
        At(f"{AMIS}[0].alias", "windows families may only specify version 'latest'"),
        {"a pinned Windows": one(alias="windows2022@v1.0.0")},
    ),
    *vary(
        "AWS-13", a_node_class, AMIS, At(f"{AMIS}[0].alias", "30"), {"a long alias": one(alias="al2023@" + "v" * 24)}
    ),
    *vary("AWS-14", a_node_class, "spec.amiFamily", "", {"the alias's family": "AL2023", "family Custom": "Custom"}),
    *vary(
        "AWS-14",
        a_node_class,
        "spec.amiFamily",
        At("spec", "if set, amiFamily must be 'AL2023' or 'Custom' when using an AL2023 alias"),
        {"another family than the alias's": "Bottlerocket"},
    ),
    *vary(
        "AWS-14",
        lambda: changed(a_node_class(), "spec.amiFamily", "AL2023"),
        AMIS,
        At("spec", "if set, amiFamily must be 'Bottlerocket' or 'Custom' when using a Bottlerocket alias"),
        {"another alias than the family's": one(alias="bottlerocket@latest")},
    ),
    *vary("AWS-14", _of_family, "spec.amiFamily", "Windows2025", {"family Ubuntu": "Ubuntu"}),
    *vary(
        "AWS-14",
        _of_family,
        "spec.amiFamily",
        At("spec", "must specify amiFamily if amiSelectorTerms does not contain an alias"),
        {"neither alias nor family": REMOVED},
    ),
]

PLACEMENT = [
    *vary(
        "AWS-15",
        a_node_class,
        RESERVATIONS,
        "",
        {
            "a reservation id": one(id="cr-1"),
            "reservation tags and owner": one(tags={"a": "b"}, ownerID="123456789012"),
            "match criteria": one(instanceMatchCriteria="open"),
            "no reservations": [],
        },
    ),
    *vary(
        "AWS-15",
        a_node_class,
        RESERVATIONS,
        AT_LEAST_ONE + "['tags', 'id', 'instanceMatchCriteria']",
        {"a reservation owner alone": one(ownerID="123456789012")},
    ),
    *vary(
        "AWS-15",
        a_node_class,
        RESERVATIONS,
        "'id' is mutually exclusive, cannot be set along with other fields in a capacity reservation selector term",
        {
            "reservation id and tags": one(id="cr-1", tags={"a": "b"}),
            "reservation id and owner": one(id="cr-1", ownerID="123456789012"),
            "reservation id and criteria": one(id="cr-1", instanceMatchCriteria="open"),
        },
    ),
    *vary("AWS-15", a_node_class, RESERVATIONS, At(f"{RESERVATIONS}[0].id", MATCH), {"id xcr-1": one(id="xcr-1")}),
    *vary(
        "AWS-15",
        a_node_class,
        RESERVATIONS,
        At(f"{RESERVATIONS}[0].ownerID", MATCH),
        {"an owner of 11 digits": one(tags={"a": "b"}, ownerID="12345678901")},
    ),
    *vary("AWS-16", a_node_class, GROUP, "", {"a group's name": {"name": "a"}, "a group's id": {"id": "pg-1"}}),
    *vary("AWS-16", a_node_class, GROUP, AT_LEAST_ONE + "['name', 'id']", {"an empty selector": {}}),
    *vary(
        "AWS-16", a_node_class, GROUP, "'name' and 'id' are mutually exclusive", {"both": {"name": "a", "id": "pg-1"}}
    ),
    *vary("AWS-16", a_node_class, GROUP, At(f"{GROUP}.name", "at least 1"), {"an empty name": {"name": ""}}),
    *vary("AWS-16", a_node_class, GROUP, At(f"{GROUP}.id", MATCH), {"id group-1": {"id": "group-1"}}),
]

SELECTOR_CASES = [*IDENTITY, *SELECTORS, *AMI_TERMS, *PLACEMENT]
