// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/directory_group.h — the directories of all event loops, told of what one of them
// learnt: a sandbox that was made is known to all at once, one that was deleted, paused or resumed
// is forgotten by all.
//
// Members are added before the first call. From then on any loop's thread may use it; the members'
// loops must still run. A hint that arrives late costs a request, never a wrong answer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bridge/net/event_loop.h"
#include "bridge/opensandbox/caching_directory.h"
#include "bridge/opensandbox/call_context.h"
#include "bridge/opensandbox/endpoint.h"
#include "bridge/opensandbox/lifecycle_types.h"

namespace bridge {

class DirectoryGroup {
 public:
  void Add(EventLoop& loop, CachingDirectory& directory) {
    members_.push_back({&loop, &directory});
  }

  void Forget(std::string_view sandbox_id) {
    for (const Member& member : members_) {
      if (member.loop->OnLoop()) {
        member.directory->Forget(sandbox_id);
      } else {
        member.loop->Post([directory = member.directory, id = std::string(sandbox_id)] {
          directory->Forget(id);
        });
      }
    }
  }

  void Remember(const CallContext& context, const SandboxRecord& record, const Endpoint& endpoint) {
    for (const Member& member : members_) {
      if (member.loop->OnLoop()) {
        member.directory->Remember(context, record, endpoint);
      } else {
        member.loop->Post([directory = member.directory, context, record, endpoint] {
          directory->Remember(context, record, endpoint);
        });
      }
    }
  }

 private:
  struct Member {
    EventLoop* loop;
    CachingDirectory* directory;
  };
  std::vector<Member> members_;
};

}  // namespace bridge
