"""The rights of whoever calls: with `--enforce-policies` a call outside deploy/aws/policies is refused, as by AWS."""
