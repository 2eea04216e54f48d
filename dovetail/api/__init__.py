"""The custom resources: NodePool, NodeClaim and NodeOverlay of karpenter.sh, EC2NodeClass of karpenter.k8s.aws,
CapacityBuffer of autoscaling.x-k8s.io, and our own of dovetail.sh.

One pydantic model per kind says everything about it: fields, defaults, bounds, rules. `dovetail.api.validation` reads
one object, `dovetail.api.crds` writes the CRDs, so the API server and the models cannot come to disagree.
"""
