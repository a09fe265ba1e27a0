#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs pytest in network, mount and process namespaces of its own, in which a Kubernetes node may do
# what it likes. When pytest ends, everything that it started is gone.
#   cluster.sh PYTEST.SH FILE...
set -euo pipefail

if (($(id -u) != 0)); then
  echo "the test cluster wants to be root: it makes namespaces, mounts and control groups" >&2
  exit 1
fi
for program in etcd containerd runc ctr ipset iptables nft conntrack; do
  PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null || {
    echo "$program is missing; third_party/install --kubernetes installs it" >&2
    exit 1
  }
done

CLUSTER_PROGRAMS=$(tests/kubernetes/cluster/build)
export CLUSTER_PROGRAMS PATH=$PATH:/usr/sbin:/sbin

# One node a machine: its control groups are the machine's.
exec 9>/var/lock/sandbox_bridge_test_cluster
flock 9
remove_groups() {
  find /sys/fs/cgroup -depth -type d -path '*/kubepods*' -exec rmdir {} + 2>/dev/null || true
}
remove_groups
trap remove_groups EXIT
code=0
unshare --net --mount --ipc --uts --pid --fork --kill-child --mount-proc -- "$@" 9>&- || code=$?
exit "$code"
