"""Roll-outs as they are shown: in `status`, `top` and the page, and of one node in `explain node`."""
