"""How steps look at the cluster: snapshots, what is asked live, and decisions beside the event loop."""
