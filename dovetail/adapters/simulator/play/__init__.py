"""Moves an embedded world: kubelets, controllers, scheduler and machines, one small step after the other."""
