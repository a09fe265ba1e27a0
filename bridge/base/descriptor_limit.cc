// SPDX-License-Identifier: Apache-2.0
#include "bridge/base/descriptor_limit.h"

#include <optional>

namespace bridge {
namespace {

std::optional<rlim_t> g_inherited;  // the soft limit before it was raised

}  // namespace

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  const rlim_t soft = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0) g_inherited = soft;
}

rlimit InheritedDescriptorLimit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (g_inherited && *g_inherited < limit.rlim_cur) limit.rlim_cur = *g_inherited;
  return limit;
}

}  // namespace bridge
