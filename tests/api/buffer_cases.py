"""What the API of sig-autoscaling accepts and refuses of CapacityBuffers (S-211); case.py says how it is read."""

from tests.api.case import MATCH, REQUIRED, Case, vary
from tests.api.manifests import REMOVED, a_buffer, changed

WORKLOAD = {"apiGroup": "apps", "kind": "Deployment", "name": "web"}
OF_A_WORKLOAD = changed(changed(a_buffer(), "spec.podTemplateRef", REMOVED), "spec.scalableRef", WORKLOAD)

BUFFER = [
    Case(cites="S-211", what="of a PodTemplate", manifest=a_buffer()),
    Case(cites="S-211", what="of a workload", manifest=OF_A_WORKLOAD),
    Case(
        cites="S-211", what="of a workload, without a size", manifest=changed(OF_A_WORKLOAD, "spec.replicas", REMOVED)
    ),
    *vary("S-211", a_buffer, "spec.limits", "", {"limits": {"cpu": 4, "memory": "8Gi"}}),
    *vary("S-211", a_buffer, "spec.provisioningStrategy", "", {"another strategy": "example.com/asleep"}),
    *vary("S-211", lambda: OF_A_WORKLOAD, "spec.percentage", "", {f"{count} percent": count for count in (0, 20, 300)}),
    *vary("S-211", a_buffer, "spec.replicas", "greater than or equal to 0", {"less than nothing": -1}),
    *vary("S-211", a_buffer, "spec.percentage", "greater than or equal to 0", {"less than 0 percent": -1}),
    *vary("S-211", a_buffer, "spec.limits", MATCH, {"a limit in words": {"cpu": "much"}}, "spec.limits.cpu"),
    *vary("S-211", a_buffer, "spec.scalableRef", "exclude each other", {"of both": WORKLOAD}, "spec"),
    *vary("S-211", a_buffer, "spec.replicas", "needs replicas or limits", {"without a size": None}, "spec"),
    *vary("S-211", a_buffer, "spec.podTemplateRef", REQUIRED, {"of nothing named": {}}, "spec.podTemplateRef.name"),
]
