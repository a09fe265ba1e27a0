// SPDX-License-Identifier: Apache-2.0

// Program kube is every program of a Kubernetes node in one file, so that the linker runs once: the name
// that it is called by (a symbolic link) says which of them it is. Beside Kubernetes' own programs these
// are metrics-server, network-policy (netpol.go) and helm-template (helm.go).
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	server "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
	metrics "sigs.k8s.io/metrics-server/cmd/metrics-server/app"
)

var programs = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": func() *cobra.Command { return manager.NewControllerManagerCommand() },
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kube-proxy":              proxy.NewProxyCommand,
	// The kubelet installs a context of signals of its own, and a second one panics.
	"kubelet": func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	"metrics-server": func() *cobra.Command {
		return metrics.NewMetricsServerCommand(server.SetupSignalHandler())
	},
	"network-policy": networkPolicyCommand,
	"helm-template":  helmTemplateCommand,
}

func main() {
	name := filepath.Base(os.Args[0])
	if name == "kubectl" {
		// A failure of kubectl is its own text, without a usage message after it.
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			os.Exit(1)
		}
		return
	}
	command, known := programs[name]
	if !known {
		fmt.Fprintf(os.Stderr, "kube: called as %q, which is none of its programs\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(command()))
}
