"""Reading live and writing, kind by kind: the ports of dovetail.ports.objects on the API server."""
