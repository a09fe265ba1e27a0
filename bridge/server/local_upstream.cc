// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/local_upstream.h"

#include <sys/random.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/local/local_opensandbox.h"

namespace bridge {
namespace {

class Running final : public LocalUpstream {
 public:
  explicit Running(std::unique_ptr<local::LocalOpenSandbox> sandbox)
      : sandbox_(std::move(sandbox)) {}

 private:
  const std::unique_ptr<local::LocalOpenSandbox> sandbox_;
};

// Other users of the machine reach the loopback port too.
absl::StatusOr<std::string> RandomKey() {
  std::array<uint8_t, 24> bytes;
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return MakeError(ErrorReason::ERROR_REASON_INTERNAL, "the system gives no random bytes");
  }
  constexpr char kHex[] = "0123456789abcdef";
  std::string key;
  for (const uint8_t byte : bytes) {
    key += kHex[byte >> 4];
    key += kHex[byte & 15];
  }
  return key;
}

// Where Bazel puts a program of //bridge/local, seen from the running one in //bridge; empty when
// it is not there, because everything is installed in one folder.
std::string BuiltBeside(const char* path) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto program = self.parent_path() / "local" / path;
  return std::filesystem::is_regular_file(program, error) ? program.string() : std::string();
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalUpstream>> StartLocalUpstream(
    const LocalUpstreamOptions& options, Log& log, ServerOptions& server) {
  if (!server.api_key_file.empty() || !server.api_key.empty()) {
    return InvalidField("api_key_file",
                        "has no meaning with --upstream=local, which makes its own");
  }
  local::LocalOptions local;
  if (!options.isolation.empty()) {
    local.isolation = local::runtime::ParseIsolation(options.isolation);
    if (!local.isolation) {
      return InvalidField("local_isolation", "is not overlay, bwrap or none");
    }
  }
  if (options.keep_sandboxes && options.state_dir.empty()) {
    return InvalidField("local_keep_sandboxes",
                        "needs --local_state_dir, else nobody finds them again");
  }
  ASSIGN_OR_RETURN(local.api_key, RandomKey());
  local.execd = BuiltBeside("execd/execd");
  local.bootstrap = BuiltBeside("runtime/bootstrap");
  local.image_dir = options.image_dir;
  local.state_dir = options.state_dir;
  local.keep_sandboxes = options.keep_sandboxes;
  local.log = [&log](std::string_view line) {
    log.Write(LogLevel::kInfo, "local opensandbox", {{"says", std::string(line)}});
  };
  const std::string key = local.api_key;
  ASSIGN_OR_RETURN(auto sandbox, local::LocalOpenSandbox::Start(std::move(local)));
  UpstreamOptions& upstream = server.services.upstream;
  upstream.url = sandbox->url();
  upstream.kind = "local";
  upstream.isolation = std::string(local::runtime::IsolationName(sandbox->isolation()));
  server.api_key = key;
  log.Write(LogLevel::kInfo, "local opensandbox started",
            {{"url", upstream.url}, {"isolation", upstream.isolation}});
  return std::make_unique<Running>(std::move(sandbox));
}

}  // namespace bridge
