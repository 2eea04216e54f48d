"""`dovetail replay` and `explain … --at`: what was decided, looked at again from what it was decided on."""
