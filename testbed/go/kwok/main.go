// kwok in the place of the kubelets, but for their leases: those are kept by leases.go, unless kwok is told to keep
// them, as people's own is.
//
// kwok's own keeping of leases (0.8.0) takes a node up again that left while its first lease was being written: the
// lease has no owner, is renewed for ever, and nothing ever takes it away. Of nodes that come and go within
// milliseconds that befalls most.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	// kwok reads --config before its command is made, and hands over what it says in the context.
	early := pflag.NewFlagSet("kwok", pflag.ContinueOnError)
	early.ParseErrorsAllowlist.UnknownFlags = true
	ctx, _ := log.InitFlags(signals.SetupSignalContext(), early)
	ctx, err := config.InitFlags(ctx, early)
	if err != nil {
		return err
	}

	command := kwok.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(early)
	seconds := command.Flags().Uint("lease-seconds", 0, "how long a lease holds; it is renewed four times in that")
	command.PreRunE = func(command *cobra.Command, _ []string) error {
		kwoks := command.Flag("node-lease-duration-seconds").Value.String() != "0"
		if kwoks == (*seconds != 0) {
			return fmt.Errorf("one of --node-lease-duration-seconds and --lease-seconds must be 0, and the other above it")
		}
		if kwoks {
			return nil
		}
		kubeconfig, selector := command.Flag("kubeconfig"), command.Flag("manage-nodes-with-label-selector")
		return keepLeases(ctx, kubeconfig.Value.String(), selector.Value.String(), int32(*seconds))
	}
	return command.ExecuteContext(ctx)
}
