// Command control-plane is a whole Kubernetes control plane in one program. Its first argument names the part to run
// (etcd, kube-apiserver, kube-scheduler, kube-controller-manager or kwok); the rest are that part's own flags.
// kwok-stages prints the stages that make kwok's nodes and pods Ready, for kwok's --config.
//
// Two variables say for whom it runs, and it ends by itself when they no longer hold: CONTROL_PLANE_RECORD is a file
// that must exist, CONTROL_PLANE_OWNER the id of a process that must live.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	nodestages "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	heartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podstages "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

func main() {
	if len(os.Args) < 2 {
		refuse("the first argument names the part to run")
	}
	part := os.Args[1]
	// Every part reads os.Args itself and must not see its own name twice.
	os.Args = append([]string{part}, os.Args[2:]...)
	go leaveWhenForgotten()
	switch part {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-scheduler":
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(controllers.NewControllerManagerCommand()))
	case "kwok":
		runKwok()
	case "kwok-stages":
		fmt.Println(strings.Join([]string{
			nodestages.DefaultNodeInit, heartbeat.DefaultNodeHeartbeatWithLease,
			podstages.DefaultPodReady, podstages.DefaultPodComplete, podstages.DefaultPodDelete,
		}, "\n---\n"))
	default:
		refuse("no part is named " + part)
	}
}

func runKwok() {
	flags := pflag.NewFlagSet("kwok", pflag.ContinueOnError)
	// kwok's own command knows the remaining flags; this set only finds the log level and the configuration.
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, _ := kwoklog.InitFlags(signals.SetupSignalContext(), flags)
	ctx, err := kwokconfig.InitFlags(ctx, flags)
	if err != nil {
		refuse(err.Error())
	}
	command := kwok.NewCommand(ctx)
	// Kubernetes owns the global --version flag, of another type: with both, every start fails.
	command.Version = ""
	command.PersistentFlags().AddFlagSet(flags)
	if err := command.ExecuteContext(ctx); err != nil {
		refuse(err.Error())
	}
}

// Nobody can find, and so stop, a process whose record is deleted or whose owner was killed.
func leaveWhenForgotten() {
	record := os.Getenv("CONTROL_PLANE_RECORD")
	owner, _ := strconv.Atoi(os.Getenv("CONTROL_PLANE_OWNER"))
	missed := 0
	// Twice in a row, so that a record that is being replaced does not count.
	for missed < 2 {
		time.Sleep(3 * time.Second)
		_, lost := os.Stat(record)
		if (record != "" && os.IsNotExist(lost)) || (owner != 0 && syscall.Kill(owner, 0) == syscall.ESRCH) {
			missed++
		} else {
			missed = 0
		}
	}
	os.Exit(0)
}

func refuse(reason string) {
	fmt.Fprintln(os.Stderr, "control-plane: "+reason)
	os.Exit(1)
}
