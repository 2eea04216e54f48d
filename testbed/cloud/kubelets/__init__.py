"""What happens in the cluster when an instance of the AWS server runs, and when it is terminated.

An instance that booted joins as a Node, as its kubelet would make it from its user data; kwok keeps it alive while it
carries the label `dovetail.test/kubelet: alive`. When the instance shuts down the label says `silent`; when it is
gone, the cloud's node controller removes the Node. A process of its own: `python -m testbed.cloud.kubelets`.
"""
