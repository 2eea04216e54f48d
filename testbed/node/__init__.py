"""Real nodes: a kubelet, containerd and kube-proxy each, in namespaces of their own, around the bed's control plane.

`make node` starts them, and `start` in cluster.py for Python. They need root on Linux, and what `cannot_run` in
programs.py names.
"""
