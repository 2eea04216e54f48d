"""Moves a simulated world: kubelets, controllers, scheduler and instances, one small step after the other."""
