"""From dovetail.model and the changes of dovetail.ports to the JSON that is written: the counterpart of parsing/."""
