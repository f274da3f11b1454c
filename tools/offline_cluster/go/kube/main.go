// One program for all of Kubernetes: it acts as the component by whose name it is called.
//
// The components share most of their code, so one build and one file of 150 MB do instead of
// seven builds and 700 MB.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubeadm "k8s.io/kubernetes/cmd/kubeadm/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// serve runs a long-living component and ends the process with its exit code.
func serve(command func() *cobra.Command) func() {
	return func() { os.Exit(cli.Run(command())) }
}

var components = map[string]func(){
	"kube-apiserver":          serve(apiserver.NewAPIServerCommand),
	"kube-controller-manager": serve(controllermanager.NewControllerManagerCommand),
	"kube-scheduler":          serve(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kube-proxy":              serve(proxy.NewProxyCommand),
	"kubelet":                 serve(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
	"kubeadm":                 func() { exitOn(kubeadm.Run()) },
	"kubectl": func() {
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err)
		}
	},
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	name := filepath.Base(os.Args[0])
	run, known := components[name]
	if !known {
		names := make([]string, 0, len(components))
		for component := range components {
			names = append(names, component)
		}
		sort.Strings(names)
		fmt.Fprintf(os.Stderr, "called as %q; call it as one of %s\n", name, strings.Join(names, ", "))
		os.Exit(64)
	}
	run()
}
