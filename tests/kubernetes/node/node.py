# SPDX-License-Identifier: Apache-2.0
"""One real Kubernetes node: etcd, API server, controllers, scheduler, kubelet, containerd, proxy.

It wants network, mount and process namespaces of its own, which cluster.sh makes: whatever it does
to routes, firewalls and mounts ends with them, and so does every process of it. Its files are below
/run/node, in memory.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from node import settings
from node.pki import Authority, kubeconfig, service_account_keys
from node.programs import Failed, Programs, eventually, run

ROOT = Path("/run/node")
# What the kubelet wants and would set for the whole machine. It is shown files with these values.
_SYSCTLS = {"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10",
            "kernel/panic_on_oops": "1", "kernel/keys/root_maxkeys": "1000000",
            "kernel/keys/root_maxbytes": "25000000"}


class Node:
    """`programs` is the folder with kubectl, kubelet and so on; `images` are OCI archives."""

    def __init__(self, programs: Path, images: list[Path]) -> None:
        self.bin = programs
        self._images = images
        self.programs = Programs(ROOT / "logs")
        self.kubeconfig = ROOT / "kubeconfig"

    def start(self) -> None:
        """Returns when the node is Ready. Raises Failed, with the ends of logs."""
        self._set_up_namespaces()
        pki = self._set_up_pki()
        self._start_containerd()
        self._start_control_plane(pki)
        for archive in self._images:
            self.load(archive)
        (ROOT / "kubelet.json").write_text(settings.kubelet(ROOT, pki / "ca.crt"))
        self.programs.start(
            "kubelet", self.bin / "kubelet", f"--config={ROOT}/kubelet.json",
            f"--kubeconfig={self.kubeconfig}", f"--hostname-override={settings.NODE}",
            f"--node-ip={settings.NODE_IP}", f"--root-dir={ROOT}/kubelet",
            f"--cert-dir={ROOT}/kubelet-pki", "--v=2")
        (ROOT / "proxy.json").write_text(settings.proxy(self.kubeconfig))
        self.programs.start("proxy", self.bin / "kube-proxy", f"--config={ROOT}/proxy.json")
        self.programs.await_ready("kubelet", self._ready)
        # Wants the node's record.
        self.programs.start(
            "network-policy", self.bin / "network-policy", f"--kubeconfig={self.kubeconfig}",
            f"--hostname-override={settings.NODE}",
            f"--service-cluster-ip-range={settings.SERVICES}")
        self.programs.await_ready("network-policy", lambda: subprocess.run(
            ["iptables", "--list", "KUBE-ROUTER-FORWARD"], capture_output=True,
            check=False).returncode == 0)

    def stop(self) -> None:
        """Ends the programs in an order that leaves no control group behind."""
        self.programs.stop_all()

    def load(self, archive: Path) -> None:
        """Makes an image known to the node under the name that is in it."""
        self.ctr("images", "import", str(archive))

    def ctr(self, *arguments: str) -> str:
        return run("ctr", "--address", ROOT / "containerd.sock", "--namespace", "k8s.io",
                   *arguments)

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """Stdout; raises Failed with stderr."""
        return run(self.bin / "kubectl", "--kubeconfig", self.kubeconfig, *arguments, stdin=stdin)

    def try_kubectl(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.bin / "kubectl"), "--kubeconfig", str(self.kubeconfig), *arguments],
            input=stdin, capture_output=True, check=False, text=True)

    def get(self, *arguments: str) -> Any:
        """`kubectl get` as a dict."""
        return json.loads(self.kubectl("get", *arguments, "--output=json"))

    def apply(self, objects: str) -> None:
        self.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", stdin=objects)

    def start_metrics(self) -> None:
        """metrics-server, for the autoscaler and `kubectl top`."""
        self.programs.start("metrics", self.bin / "metrics-server", *settings.metrics_server(ROOT))
        service: Mapping[str, Any] = {"name": "metrics-server", "namespace": "kube-system"}
        port = {"name": "https", "port": 4443, "protocol": "TCP"}
        objects = [
            {"apiVersion": "v1", "kind": "Service", "metadata": service,
             "spec": {"ports": [{"name": "https", "port": 443, "targetPort": 4443}]}},
            {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
             "metadata": {"name": "metrics-server-1", "namespace": "kube-system",
                          "labels": {"kubernetes.io/service-name": "metrics-server"}},
             "ports": [port],
             "endpoints": [{"addresses": [settings.NODE_IP], "conditions": {"ready": True}}]},
            {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
             "metadata": {"name": "v1beta1.metrics.k8s.io"},
             "spec": {"service": service, "group": "metrics.k8s.io", "version": "v1beta1",
                      "insecureSkipTLSVerify": True, "groupPriorityMinimum": 100,
                      "versionPriority": 100}}]
        self.apply("\n---\n".join(json.dumps(each) for each in objects))

    def _set_up_namespaces(self) -> None:
        if os.getpid() != 1:
            raise Failed("not in namespaces of its own: cluster.sh makes them")
        run("mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", "/run")
        run("mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", "/var/log")
        for name in ("kubelet", "pki", "cni", "logs", "sysctl"):
            (ROOT / name).mkdir(parents=True)
        # Volumes of pods are mounts below it that containers shall see.
        run("mount", "--bind", ROOT / "kubelet", ROOT / "kubelet")
        run("mount", "--make-rshared", ROOT / "kubelet")
        for name, value in _SYSCTLS.items():
            shown = ROOT / "sysctl" / name.replace("/", "-")
            shown.write_text(value + "\n")
            run("mount", "--bind", shown, f"/proc/sys/{name}")
        run("ip", "link", "set", "lo", "up")
        # A default route has to be there, or addresses of services are unreachable before the proxy
        # rewrites them. It leads to the other end of a cable that ends here, too.
        run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0peer")
        for name in ("eth0", "eth0peer"):
            run("ip", "link", "set", name, "up")
        run("ip", "address", "add", f"{settings.NODE_IP}/24", "dev", "eth0")
        run("ip", "route", "add", "default", "via", "10.77.0.254", "dev", "eth0")
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1\n")
        # Policies hold between pods of one bridge, too.
        Path("/proc/sys/net/bridge/bridge-nf-call-iptables").write_text("1\n")

    def _set_up_pki(self) -> Path:
        authority = Authority(ROOT / "pki", "kubernetes")
        authority.issue("apiserver", "/CN=kube-apiserver", "IP:127.0.0.1", f"IP:{settings.NODE_IP}",
                        "IP:10.96.0.1", "DNS:localhost", "DNS:kubernetes.default.svc")
        admin = authority.issue("admin", "/O=system:masters/CN=admin")
        authority.issue("front-proxy", "/CN=front-proxy")
        service_account_keys(authority.folder)
        kubeconfig(self.kubeconfig, settings.API, authority.certificate, *admin)
        return authority.folder

    def _start_containerd(self) -> None:
        (ROOT / "cni/10-pods.conflist").write_text(settings.network(ROOT))
        (ROOT / "containerd.toml").write_text(settings.containerd(ROOT))
        self.programs.start("containerd", "containerd", "--config", ROOT / "containerd.toml")
        socket = ROOT / "containerd.sock"

        def answers() -> bool:
            return subprocess.run(["ctr", "--address", str(socket), "version"],
                                  capture_output=True, check=False).returncode == 0
        self.programs.await_ready("containerd", answers)

    def _start_control_plane(self, pki: Path) -> None:
        self.programs.start("etcd", "etcd", *settings.etcd(ROOT))
        self.programs.start("api-server", self.bin / "kube-apiserver", *settings.api_server(pki),
                            f"--cert-dir={ROOT}/api-server")
        self.programs.await_ready(
            "api-server", lambda: self.try_kubectl("get", "--raw", "/readyz").returncode == 0, 120)
        self.programs.start("manager", self.bin / "kube-controller-manager",
                            *settings.controller_manager(ROOT, pki))
        self.programs.start("scheduler", self.bin / "kube-scheduler", *settings.scheduler(ROOT))

    def _ready(self) -> bool:
        found = self.try_kubectl("get", "node", settings.NODE, "--output=json")
        if found.returncode != 0:
            return False
        conditions = json.loads(found.stdout)["status"].get("conditions", [])
        account = self.try_kubectl("get", "serviceaccount", "default", "--namespace=default")
        return account.returncode == 0 and any(
            c["type"] == "Ready" and c["status"] == "True" for c in conditions)


__all__ = ["Failed", "Node", "eventually"]
