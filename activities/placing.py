"""TEMP"""
from core.model import names
from core.model.plans import *
from core.model.pod_rules import is_provisionable
from core.model.resources import fits, subtract, total
def plan_provisioning(snapshot, settings, stop):
    pods=[p for p in snapshot.pods.values() if is_provisionable(p)]
    taken=set()
    for c in snapshot.claims.values():
        if not c.is_true(names.LAUNCHED): taken.update(c.annotations.get(names.PLANNED_PODS,"").split(","))
    pods=[p for p in pods if p.uid not in taken]
    # existing room
    used={}
    for p in snapshot.pods.values():
        if p.node_name: used.setdefault(p.node_name,[]).append(p.requests)
    free={n.name: subtract(n.allocatable,total(used.get(n.name,[]))) for n in snapshot.nodes.values() if not n.taints}
    for c in snapshot.claims.values():
        if c.is_true(names.LAUNCHED) and c.deleting_since is None and c.node_name not in free:
            free[c.name]=dict(c.allocatable)
    left=[];nom=set()
    for p in pods:
        for n,f in free.items():
            if fits(p.requests,f):
                free[n]=subtract(f,p.requests); nom.add(n); break
        else: left.append(p)
    proposed=[];lists=[]
    pool=next((x for x in snapshot.pools.values()),None)
    if pool and left:
        types=[t for t in snapshot.catalogues[pool.name].types if any(o.available for o in t.offerings)]
        for i in range(0,len(left),6):
            batch=left[i:i+6]
            want=total([p.requests for p in batch])
            ok=[t for t in types if fits(want,subtract(t.capacity,t.overhead)) and "windows" not in t.name and "arm64" not in t.name]
            ok.sort(key=lambda t:min(o.price for o in t.offerings))
            lists.append(tuple(t.name for t in ok[:60]))
            proposed.append(ProposedNode(pool=pool.name,pool_uid=pool.uid,node_class=pool.template.node_class,requirements=pool.template.requirements,type_list=len(lists)-1,requests=tuple(sorted(want.items())),labels=tuple(sorted({**pool.template.labels,names.NODE_POOL:pool.name,f"{pool.template.node_class.group}/{pool.template.node_class.kind.lower()}":pool.template.node_class.name}.items())),annotations=((names.NODE_POOL_HASH,pool.hash),(names.NODE_POOL_HASH_VERSION,"v3")),expire_after=pool.template.expire_after,pods=tuple(PlannedPod(namespace=p.namespace,name=p.name,uid=p.uid) for p in batch)))
    return ProvisioningPlan(seen=Seen(taken_at=snapshot.now,versions=tuple(sorted(snapshot.seen.items()))),proposed=tuple(proposed),type_lists=tuple(lists),nominated=()),None
def refusal_notices(snapshot,placement): return ()
