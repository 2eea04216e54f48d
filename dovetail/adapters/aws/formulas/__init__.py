"""Formulas in spec.kubelet: numbers that depend on the instance type (W-24)."""
