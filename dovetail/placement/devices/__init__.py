"""Which devices does a pod with resource claims get, on which node?"""
