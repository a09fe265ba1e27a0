# SPDX-License-Identifier: Apache-2.0
"""Configuration files of the node's programs, and why they differ from the defaults.

They have to work in a virtual machine without systemd and without CAP_SYS_RESOURCE, with control
groups of version 1 or 2, and with Debian 12's containerd 1.6.
"""

from __future__ import annotations

import json
from pathlib import Path

NODE = "node1"
NODE_IP = "10.77.0.1"
SERVICES = "10.96.0.0/16"
PODS = "10.244.0.0/24"
API = f"https://{NODE_IP}:6443"


def containerd(root: Path) -> str:
    """Without the snapshotters that want block devices; scores of the out-of-memory killer stay as
    they are, since lowering one needs CAP_SYS_RESOURCE."""
    unused = [f"io.containerd.snapshotter.v1.{name}"
              for name in ("btrfs", "zfs", "devmapper", "aufs")]
    return f"""version = 2
root = "{root}/containerd"
state = "{root}/containerd-state"
disabled_plugins = {json.dumps([*unused, "io.containerd.tracing.processor.v1.otlp"])}
[grpc]
  address = "{root}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  disable_apparmor = true
  restrict_oom_score_adj = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{root}/cni"
"""


def network(root: Path) -> str:
    """Pods are ports of one bridge of the node."""
    addresses = {"type": "host-local", "dataDir": f"{root}/ipam", "ranges": [[{"subnet": PODS}]],
                 "routes": [{"dst": "0.0.0.0/0"}]}
    return json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": [
        {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True,
         "ipMasq": False, "ipam": addresses},
        {"type": "portmap", "capabilities": {"portMappings": True}}]})


def kubelet(root: Path, authority: Path) -> str:
    """JSON is YAML. The kubelet looks at secrets every two seconds, so that rotations are quick."""
    return json.dumps({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "containerRuntimeEndpoint": f"unix://{root}/containerd.sock",
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                           "x509": {"clientCAFile": str(authority)}},
        "authorization": {"mode": "Webhook"},
        "address": "0.0.0.0",
        "podLogsDir": f"{root}/pods",
        "resolvConf": "",
        "oomScoreAdj": 0,
        "syncFrequency": "2s",
        "imageMinimumGCAge": "24h",
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%",
                         "imagefs.available": "1%", "nodefs.inodesFree": "1%"},
    })


def proxy(kubeconfig: Path) -> str:
    """nftables, since not every kernel has IPVS; conntrack's sizes belong to the machine."""
    return json.dumps({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "clusterCIDR": PODS,
        "hostnameOverride": NODE,
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s",
                      "tcpCloseWaitTimeout": "0s"},
        "oomScoreAdj": 0,
        "nodePortAddresses": [f"{NODE_IP}/32"],
    })


def etcd(root: Path) -> list[str]:
    """Nothing of it has to survive."""
    client, peer = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
    return ["--data-dir", f"{root}/etcd", "--listen-client-urls", client,
            "--advertise-client-urls", client, "--listen-peer-urls", peer,
            "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
            "--unsafe-no-fsync", "--log-level", "warn"]


def api_server(pki: Path) -> list[str]:
    return ["--etcd-servers=http://127.0.0.1:2379", "--secure-port=6443",
            f"--advertise-address={NODE_IP}", f"--service-cluster-ip-range={SERVICES}",
            "--authorization-mode=Node,RBAC", "--allow-privileged=true", "--profiling=false",
            f"--client-ca-file={pki}/ca.crt", f"--tls-cert-file={pki}/apiserver.crt",
            f"--tls-private-key-file={pki}/apiserver.key",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={pki}/sa.pub",
            f"--service-account-signing-key-file={pki}/sa.key",
            f"--kubelet-client-certificate={pki}/admin.crt",
            f"--kubelet-client-key={pki}/admin.key",
            "--kubelet-preferred-address-types=InternalIP",
            # How it introduces callers to metrics-server.
            f"--requestheader-client-ca-file={pki}/ca.crt",
            "--requestheader-allowed-names=front-proxy",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-username-headers=X-Remote-User",
            f"--proxy-client-cert-file={pki}/front-proxy.crt",
            f"--proxy-client-key-file={pki}/front-proxy.key"]


def controller_manager(root: Path, pki: Path) -> list[str]:
    """The autoscaler looks every few seconds instead of every minute."""
    return [*_client(root), f"--service-account-private-key-file={pki}/sa.key",
            f"--root-ca-file={pki}/ca.crt", "--use-service-account-credentials=true",
            "--bind-address=127.0.0.1", "--leader-elect=false",
            "--allocate-node-cidrs=false", f"--cert-dir={root}/manager",
            "--horizontal-pod-autoscaler-sync-period=3s",
            "--horizontal-pod-autoscaler-initial-readiness-delay=3s",
            "--horizontal-pod-autoscaler-cpu-initialization-period=5s"]


def scheduler(root: Path) -> list[str]:
    return [*_client(root), "--bind-address=127.0.0.1", "--leader-elect=false",
            f"--cert-dir={root}/scheduler"]


def metrics_server(root: Path) -> list[str]:
    return [*_client(root), "--kubelet-insecure-tls",
            "--kubelet-preferred-address-types=InternalIP",
            "--metric-resolution=10s", "--kubelet-request-timeout=5s", "--secure-port=4443",
            f"--bind-address={NODE_IP}", f"--cert-dir={root}/metrics"]


def _client(root: Path) -> list[str]:
    return [f"--{name}kubeconfig={root}/kubeconfig"
            for name in ("", "authentication-", "authorization-")]
