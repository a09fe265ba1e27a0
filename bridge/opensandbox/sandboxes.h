// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/sandboxes.h — the lifecycle of sandboxes on one event loop: its parts, wired.
// Loop thread only. What it refers to outlives it; `tasks` is drained before it goes.
#pragma once

#include <utility>

#include "bridge/net/task_scope.h"
#include "bridge/opensandbox/daemon_finder.h"
#include "bridge/opensandbox/directory_group.h"
#include "bridge/opensandbox/lifecycle_client.h"
#include "bridge/opensandbox/reclaimer.h"
#include "bridge/opensandbox/sandbox_creator.h"
#include "bridge/opensandbox/sandbox_pauser.h"
#include "bridge/opensandbox/sandbox_remover.h"
#include "bridge/opensandbox/usable_waiter.h"

namespace bridge {

struct Sandboxes {
  Sandboxes(LifecycleClient& lifecycle, DaemonFinder& daemon_finder, DirectoryGroup& directories,
            TaskScope& tasks, CreateDefaults defaults = {})
      : client(lifecycle),
        finder(daemon_finder),
        remover(client, directories),
        reclaimer(client.loop(), remover, tasks),
        usable(client, finder, directories),
        creator({.client = client, .usable = usable, .reclaimer = reclaimer, .tasks = tasks},
                std::move(defaults)),
        pauser(client, usable, directories) {}
  Sandboxes(const Sandboxes&) = delete;
  Sandboxes& operator=(const Sandboxes&) = delete;

  LifecycleClient& client;
  DaemonFinder& finder;
  SandboxRemover remover;
  Reclaimer reclaimer;
  UsableWaiter usable;
  SandboxCreator creator;
  SandboxPauser pauser;
};

}  // namespace bridge
