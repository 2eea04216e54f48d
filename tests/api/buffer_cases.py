"""What the API of sig-autoscaling accepts and refuses of CapacityBuffers (PLC-211); case.py says how it is read."""

from tests.api.case import MATCH, REQUIRED, At, Case, vary
from tests.api.manifests import REMOVED, a_buffer, changed

WORKLOAD = {"apiGroup": "apps", "kind": "Deployment", "name": "web"}
OF_A_WORKLOAD = changed(changed(a_buffer(), "spec.podTemplateRef", REMOVED), "spec.scalableRef", WORKLOAD)

BUFFER = [
    Case(cites="PLC-211", what="of a PodTemplate", manifest=a_buffer()),
    Case(cites="PLC-211", what="of a workload", manifest=OF_A_WORKLOAD),
    Case(
        cites="PLC-211", what="of a workload, without a size", manifest=changed(OF_A_WORKLOAD, "spec.replicas", REMOVED)
    ),
    *vary("PLC-211", a_buffer, "spec.limits", "", {"limits": {"cpu": 4, "memory": "8Gi"}}),
    *vary("PLC-211", a_buffer, "spec.provisioningStrategy", "", {"another strategy": "example.com/asleep"}),
    *vary(
        "PLC-211", lambda: OF_A_WORKLOAD, "spec.percentage", "", {f"{count} percent": count for count in (0, 20, 300)}
    ),
    *vary("PLC-211", a_buffer, "spec.replicas", "greater than or equal to 0", {"less than nothing": -1}),
    *vary("PLC-211", a_buffer, "spec.percentage", "greater than or equal to 0", {"less than 0 percent": -1}),
    *vary("PLC-211", a_buffer, "spec.limits", At("spec.limits.cpu", MATCH), {"a limit in words": {"cpu": "much"}}),
    *vary("PLC-211", a_buffer, "spec.scalableRef", At("spec", "but not both"), {"of both": WORKLOAD}),
    *vary(
        "PLC-211",
        a_buffer,
        "spec.replicas",
        At("spec", "replicas or limits must also be set"),
        {"without a size": None},
    ),
    *vary(
        "PLC-211", a_buffer, "spec.podTemplateRef", At("spec.podTemplateRef.name", REQUIRED), {"of nothing named": {}}
    ),
]
