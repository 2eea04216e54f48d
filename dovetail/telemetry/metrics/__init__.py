"""What is counted and measured, under Karpenter's metric names.

Steps count through `catalogue` (which names exist) and `instruments` (how they are made); `lifecycle`, `disruption`,
`provisioning`, `pod_times`, `phases`, `reconciles`, `outcomes` and the modules of calls say when. `gauges`,
`pool_costs` and `condition_metrics` are worked out at each scrape, by the worker that `duties` says; `scrape` puts all
together and `exposition` prints it.
"""
