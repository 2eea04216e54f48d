// Prometheus and promtool, for the tests of metrics, alerts and dashboards. In a module of its own, outside the control
// plane's folder: whoever needs no Prometheus does not build it, and its pins change nothing of the control plane's.
module dovetail.test/prometheus

go 1.26.7

require github.com/prometheus/prometheus v0.316.0 // indirect
