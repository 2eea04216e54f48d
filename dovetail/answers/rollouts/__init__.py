"""Roll-outs as people see them, in `status`, `top`, the page, `explain` and `dovetail rollout`."""
