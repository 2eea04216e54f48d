package main

import (
	"context"
	"math/rand/v2"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/kwok/pkg/log"
)

// keeper keeps one lease for each node that has the label, as the node's kubelet would.
//
// Every lease is written with its node as its owner, so one that is still on its way when the node goes is taken away
// by the garbage collector, whoever is quicker. Each node has a goroutine of its own: none waits for another's.
type keeper struct {
	leases  typed.LeaseInterface
	seconds int32
	beating map[string]beating // by the node's name; only the informer's handlers touch it, one at a time
}

type beating struct {
	node types.UID
	stop context.CancelFunc
}

// keepLeases begins to, and returns; it ends with the context.
func keepLeases(ctx context.Context, kubeconfig, selector string, seconds int32) error {
	settings, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	settings.QPS = -1 // no limit: a heartbeat that waits in line is a node that falls to NotReady
	client, err := kubernetes.NewForConfig(settings)
	if err != nil {
		return err
	}
	k := &keeper{client.CoordinationV1().Leases(core.NamespaceNodeLease), seconds, map[string]beating{}}
	_, nodes := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewFilteredListWatchFromClient(
			client.CoreV1().RESTClient(), "nodes", meta.NamespaceAll,
			func(options *meta.ListOptions) { options.LabelSelector = selector },
		),
		ObjectType: &core.Node{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(node any) { k.begin(ctx, node.(*core.Node)) },
			UpdateFunc: func(_, node any) { k.begin(ctx, node.(*core.Node)) },
			DeleteFunc: k.end,
		},
	})
	go nodes.Run(ctx.Done())
	return nil
}

// begin also notices a node of the same name in the place of another, which a list after a lost watch shows as a change.
func (k *keeper) begin(ctx context.Context, node *core.Node) {
	before, known := k.beating[node.Name]
	if known && before.node == node.UID {
		return
	}
	if known {
		before.stop()
	}
	ctx, stop := context.WithCancel(ctx)
	k.beating[node.Name] = beating{node.UID, stop}
	go k.beat(ctx, node.Name, node.UID)
}

// end is also called when the label says that the kubelet is silent; its lease then stays, and runs out.
func (k *keeper) end(gone any) {
	name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(gone)
	if one, known := k.beating[name]; err == nil && known {
		one.stop()
		delete(k.beating, name)
	}
}

func (k *keeper) beat(ctx context.Context, name string, node types.UID) {
	period := time.Duration(k.seconds) * time.Second / 4
	var last *coordination.Lease
	for {
		written, err := k.write(ctx, name, node, last)
		if ctx.Err() != nil {
			return
		}
		wait := period
		if last = written; err != nil {
			log.FromContext(ctx).Error("a node's lease is not written", "node", name, "err", err)
			last, wait = nil, period/4 // what is there now is read anew
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait + time.Duration(rand.Float64()*0.04*float64(wait))): // nodes that came at once drift apart
		}
	}
}

// write renews the lease as last written; without one it creates the lease, or takes over the one that it finds.
func (k *keeper) write(ctx context.Context, name string, node types.UID, last *coordination.Lease) (*coordination.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(k.seconds)*time.Second)
	defer cancel()
	if last == nil {
		made, err := k.leases.Create(ctx, k.filled(&coordination.Lease{}, name, node), meta.CreateOptions{})
		if !errors.IsAlreadyExists(err) {
			return made, err
		}
		if last, err = k.leases.Get(ctx, name, meta.GetOptions{}); err != nil {
			return nil, err
		}
	}
	return k.leases.Update(ctx, k.filled(last, name, node), meta.UpdateOptions{})
}

func (k *keeper) filled(lease *coordination.Lease, name string, node types.UID) *coordination.Lease {
	lease = lease.DeepCopy()
	lease.Name = name
	lease.OwnerReferences = []meta.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: name, UID: node}}
	lease.Spec.HolderIdentity = &name
	lease.Spec.LeaseDurationSeconds = &k.seconds
	lease.Spec.RenewTime = ptr.To(meta.NowMicro())
	return lease
}
