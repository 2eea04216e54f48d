"""A part of CEL, for formulas of a kubelet and selectors of devices (AWS-24, PLC-202)."""
