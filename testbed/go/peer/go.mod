// Karpenter's own end-to-end suites, as published. Only this pin is ours: they are compiled from the module.
module dovetail.test/peer

go 1.26.6

require sigs.k8s.io/karpenter v1.14.1 // indirect
