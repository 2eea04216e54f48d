"""The AWS server of the test bed: moto's server with a declared world of ours in front of it, spoken to over HTTP.

`python -m testbed.cloud` runs it, `testbed.cloud.server` starts and stops it for Python callers,
`python -m testbed.cloud.kubelets` makes Nodes join a real cluster when its instances run.
"""
