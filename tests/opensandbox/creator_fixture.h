// SPDX-License-Identifier: Apache-2.0
//
// A SandboxCreator and its parts on an OpenSandbox in memory.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "bridge/opensandbox/sandbox_creator.h"
#include "tests/opensandbox/lifecycle_fixture.h"

namespace bridge {

class CreatorFixture : public LifecycleFixture {
 protected:
  using Result = absl::StatusOr<CreatedSandbox>;

  static CreateSpec Spec() {
    CreateSpec spec;
    spec.image = "img";
    spec.ttl = absl::Minutes(10);
    return spec;
  }
  auto Body(CreateSpec spec, std::string request_id = "",
            absl::Duration ready_timeout = absl::Seconds(60)) {
    return [=, this] { return creator_.Create(Context(), spec, request_id, ready_timeout); };
  }
  Result Create(CreateSpec spec = Spec(), std::string request_id = "",
                absl::Duration ready_timeout = absl::Seconds(60)) {
    return Run(Body(spec, request_id, ready_timeout));
  }
  int Posts() { return fake_.Count("POST /v1/sandboxes"); }
  int Deletes() { return fake_.Count("DELETE /v1/sandboxes/*"); }
  nlohmann::json PostBody() {
    for (const SeenRequest& seen : fake_.requests()) {
      if (seen.method == "POST" && seen.path == "/v1/sandboxes")
        return nlohmann::json::parse(seen.body);
    }
    return {};
  }

  SandboxRemover remover_{client_, directories_};
  Reclaimer reclaimer_{loop_, remover_, tasks_};
  UsableWaiter usable_{client_, finder_, directories_};
  SandboxCreator creator_{
      {.client = client_, .usable = usable_, .reclaimer = reclaimer_, .tasks = tasks_}, {}};
};

}  // namespace bridge
