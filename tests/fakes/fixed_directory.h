// SPDX-License-Identifier: Apache-2.0
//
// tests/fakes/fixed_directory.h — a SandboxDirectory that knows one daemon.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/opensandbox/sandbox_directory.h"

namespace bridge {

class FixedDirectory final : public SandboxDirectory {
 public:
  explicit FixedDirectory(std::string url) { SetUrl(std::move(url)); }

  void SetUrl(std::string url) {
    url_ = std::move(url);
    Forget("");
  }
  // What Explain() says from now on; OK: the failure as SANDBOX_UNREACHABLE.
  void SetExplanation(absl::Status status) { explanation_ = std::move(status); }
  int resolves() const { return resolves_; }
  std::shared_ptr<Daemon> daemon() const { return daemon_; }

  Task<absl::StatusOr<std::shared_ptr<Daemon>>> Resolve(CallContext, std::string,
                                                        std::string) override {
    ++resolves_;
    co_return daemon_;
  }
  Task<absl::Status> Explain(CallContext, std::string, absl::Status failure) override {
    if (!explanation_.ok()) co_return explanation_;
    ErrorDetails details{.metadata = MetadataOf(failure)};
    co_return MakeError(ErrorReason::ERROR_REASON_SANDBOX_UNREACHABLE,
                        std::string(failure.message()), std::move(details));
  }
  void Forget(std::string_view) override {
    daemon_ = std::make_shared<Daemon>();
    daemon_->sandbox_id = "box";
    daemon_->incarnation = "1";
    daemon_->endpoint.url = url_;
  }

 private:
  std::string url_;
  std::shared_ptr<Daemon> daemon_;
  absl::Status explanation_;
  int resolves_ = 0;
};

}  // namespace bridge
