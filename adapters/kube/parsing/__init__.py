"""From the JSON of the Kubernetes API to the types of core.model, once, at the edge."""
