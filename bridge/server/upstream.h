// SPDX-License-Identifier: Apache-2.0
//
// server/upstream.h — the clients of one lane, from bytes to commands, in the order in which each
// needs the ones before it. Used on the lane's loop only.
#pragma once

#include "bridge/net/http.h"
#include "bridge/net/task_scope.h"
#include "bridge/opensandbox/caching_directory.h"
#include "bridge/opensandbox/daemon_client.h"
#include "bridge/opensandbox/daemon_finder.h"
#include "bridge/opensandbox/directory_group.h"
#include "bridge/opensandbox/exec_client.h"
#include "bridge/opensandbox/fetcher.h"
#include "bridge/opensandbox/file_client.h"
#include "bridge/opensandbox/isolation_client.h"
#include "bridge/opensandbox/lifecycle_client.h"
#include "bridge/opensandbox/process_client.h"
#include "bridge/opensandbox/sandboxes.h"

namespace bridge {

struct UpstreamClientsOptions {
  BaseUrl server = {};
  // All traffic to sandboxes goes through the OpenSandbox server's proxy.
  bool through_server = false;
};

struct UpstreamClients {
  // `http`, `background` and `directories` outlive this; `background` is drained before this goes.
  UpstreamClients(HttpClient& http, TaskScope& background, DirectoryGroup& directories,
                  const UpstreamClientsOptions& options)
      : fetcher(http),
        lifecycle(http.loop(), fetcher, {.server = options.server}),
        finder(lifecycle, fetcher, {.through_server = options.through_server}),
        directory(lifecycle, finder, background, {}),
        daemons(http, directory),
        execs(daemons, background),
        files(daemons, background),
        isolation(daemons, background),
        processes(daemons, background, execs),
        sandboxes(lifecycle, finder, directories, background) {
    directories.Add(http.loop(), directory);
  }
  UpstreamClients(const UpstreamClients&) = delete;
  UpstreamClients& operator=(const UpstreamClients&) = delete;

  HttpFetcher fetcher;
  LifecycleClient lifecycle;
  DaemonFinder finder;
  CachingDirectory directory;
  DaemonClient daemons;
  ExecClient execs;
  FileClient files;
  IsolationClient isolation;
  ProcessClient processes;
  Sandboxes sandboxes;
};

}  // namespace bridge
