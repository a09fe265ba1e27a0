// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/cloudnativelabs/kube-router/v2/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/v2/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/v2/pkg/options"
	"github.com/spf13/cobra"
	server "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// networkPolicyCommand enforces NetworkPolicy by kube-router's controller alone (iptables and ipset):
// without its routes, its service proxy and what those bring along.
func networkPolicyCommand() *cobra.Command {
	config := options.NewKubeRouterConfig()
	config.EnableIPv4 = true
	config.IPTablesSyncPeriod = 10 * time.Second
	var kubeconfig string
	command := &cobra.Command{
		Use:           "network-policy",
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(*cobra.Command, []string) error { return enforce(config, kubeconfig) },
	}
	command.Flags().StringVar(&kubeconfig, "kubeconfig", "", "how to reach the API server")
	command.Flags().StringVar(&config.HostnameOverride, "hostname-override", "", "name of the node")
	command.Flags().StringSliceVar(&config.ClusterIPCIDRs, "service-cluster-ip-range", nil, "CIDR of services")
	return command
}

func enforce(config *options.KubeRouterConfig, kubeconfig string) error {
	rest, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return err
	}
	stop := server.SetupSignalHandler()
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	namespaces := factory.Core().V1().Namespaces().Informer()
	policies := factory.Networking().V1().NetworkPolicies().Informer()
	factory.Start(stop)
	for kind, synced := range factory.WaitForCacheSync(stop) {
		if !synced {
			return fmt.Errorf("cannot list %v", kind)
		}
	}

	tables, sets, err := netpol.NewIPTablesHandlers(config)
	if err != nil {
		return err
	}
	var ipset sync.Mutex
	controller, err := netpol.NewNetworkPolicyController(
		client, config, pods, policies, namespaces, &ipset, tables, sets)
	if err != nil {
		return err
	}
	for _, each := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{pods, controller.PodEventHandler},
		{namespaces, controller.NamespaceEventHandler},
		{policies, controller.NetworkPolicyEventHandler},
	} {
		if _, err := each.informer.AddEventHandler(each.handler); err != nil {
			return err
		}
	}

	// The controller reports that it lives after every round; nobody asks here.
	beats := make(chan *healthcheck.ControllerHeartbeat)
	go func() {
		for range beats {
		}
	}()
	var running sync.WaitGroup
	running.Add(1)
	controller.Run(beats, stop, &running)
	running.Wait()
	return nil
}
