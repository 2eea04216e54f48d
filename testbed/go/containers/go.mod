// What runs in containers of the real nodes of the test bed: programs of our own, of the standard library alone.
module dovetail.test/containers

go 1.26.0
