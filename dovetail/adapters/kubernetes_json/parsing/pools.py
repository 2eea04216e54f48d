"""NodePools: JSON of the API in, dovetail.model out, with upstream's hash of spec.template (NPL-1).

The hash is taken from the JSON, because the model does not distinguish `labels: {}` from no labels at all and the hash
does. Raises UnreadableObject and nothing else.
"""

from dovetail.adapters.kubernetes_json.parsing.fields import conditions, node_class
from dovetail.adapters.kubernetes_json.parsing.hashes import template_hash
from dovetail.adapters.kubernetes_json.parsing.nodes import lasting
from dovetail.adapters.kubernetes_json.parsing.reading import list_of, name_of, optional_text, reading, text_of
from dovetail.adapters.kubernetes_json.parsing.selectors import parse_expressions, parse_taints
from dovetail.model.pools import Budget, ClaimTemplate, DisruptionPolicy, NodePool
from dovetail.model.values.durations import parse_seconds
from dovetail.model.values.json import ReadOnlyJson
from dovetail.model.values.resources import parse_resources
from dovetail.model.values.time import optional_time


def parse_node_pool(raw: ReadOnlyJson) -> NodePool:
    with reading("NodePool", raw) as place:
        meta, spec, status = raw["metadata"], raw["spec"] or {}, raw.get("status") or {}
        name = name_of(meta)
        deleting = optional_time(meta.get("deletionTimestamp"))
        place.field = "spec.template"
        template = parse_template(spec.get("template") or {})
        hashed = template_hash(spec.get("template") or {})
        place.field = "spec.disruption"
        disruption = parse_disruption(spec.get("disruption") or {})
        place.field = "spec.limits"
        limits = None if spec.get("limits") is None else parse_resources(spec["limits"])
        place.field = "spec or status"
        return NodePool(
            name=name,
            uid=meta.get("uid") or "",
            resource_version=meta.get("resourceVersion") or "",
            generation=meta.get("generation") or 0,
            deleting_since=deleting,
            labels=meta.get("labels") or {},
            annotations=meta.get("annotations") or {},
            template=template,
            disruption=disruption,
            limits=limits,
            weight=spec.get("weight") or 0,
            replicas=spec.get("replicas"),
            conditions=conditions(status.get("conditions")),
            usage=None if status.get("resources") is None else parse_resources(status["resources"]),
            hash=hashed,
        )


def parse_template(raw: ReadOnlyJson) -> ClaimTemplate:
    """spec.template. An absent expireAfter stays absent: the API server fills in its default."""
    meta, spec = raw.get("metadata") or {}, raw.get("spec") or {}
    grace = spec.get("terminationGracePeriod")
    return ClaimTemplate(
        labels=meta.get("labels") or {},
        annotations=meta.get("annotations") or {},
        node_class=node_class(spec.get("nodeClassRef")),
        requirements=parse_expressions(spec.get("requirements")),
        taints=parse_taints(spec.get("taints")),
        startup_taints=parse_taints(spec.get("startupTaints")),
        expire_after=lasting(spec.get("expireAfter")),
        termination_grace=None if grace is None else parse_seconds(grace),
    )


def parse_disruption(raw: ReadOnlyJson) -> DisruptionPolicy:
    """spec.disruption, with the API's own defaults for what is absent (DIS-193)."""
    after = raw.get("consolidateAfter", "0s")
    budgets = raw.get("budgets")
    default = DisruptionPolicy()
    return DisruptionPolicy(
        policy=raw.get("consolidationPolicy") or default.policy,
        consolidate_after=0.0 if after is None else lasting(after),
        budgets=default.budgets if budgets is None else tuple(parse_budget(b) for b in budgets),
    )


def parse_budget(raw: ReadOnlyJson) -> Budget:
    """One budget, as written: whether it is valid is judged where it is evaluated (DIS-54)."""
    reasons, duration = raw.get("reasons"), raw.get("duration")
    return Budget(
        nodes=optional_text(raw.get("nodes")) or "",
        reasons=None if reasons is None else tuple(text_of(each) for each in list_of(reasons)),
        schedule=optional_text(raw.get("schedule")),
        duration=None if duration is None else parse_seconds(text_of(duration)),
    )
