"""The whole system on real parts: a control plane, a Temporal server and an AWS server over HTTP."""
