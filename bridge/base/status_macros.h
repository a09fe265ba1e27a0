// SPDX-License-Identifier: Apache-2.0
//
// base/status_macros.h — early return on a failed absl::Status or absl::StatusOr.
// The CO_ forms are for coroutines whose result is made from a Status:
//   CO_RETURN_IF_ERROR(co_await client.Ping());
//   CO_ASSIGN_OR_RETURN(Endpoint endpoint, co_await Resolve(id));
#pragma once

#include <utility>

// NOLINTBEGIN(bugprone-macro-parentheses): a declaration cannot stand in parentheses.
#define SB_CONCAT_INNER(a, b) a##b
#define SB_CONCAT(a, b) SB_CONCAT_INNER(a, b)

#define RETURN_IF_ERROR(expr)              \
  do {                                     \
    auto sb_status = (expr);               \
    if (!sb_status.ok()) return sb_status; \
  } while (false)

#define SB_ASSIGN_OR_RETURN(tmp, lhs, expr)      \
  auto tmp = (expr);                             \
  if (!tmp.ok()) return std::move(tmp).status(); \
  lhs = *std::move(tmp)
#define ASSIGN_OR_RETURN(lhs, expr) SB_ASSIGN_OR_RETURN(SB_CONCAT(sb_or_, __LINE__), lhs, expr)

#define CO_RETURN_IF_ERROR(expr)              \
  do {                                        \
    auto sb_status = (expr);                  \
    if (!sb_status.ok()) co_return sb_status; \
  } while (false)

#define SB_CO_ASSIGN_OR_RETURN(tmp, lhs, expr)      \
  auto tmp = (expr);                                \
  if (!tmp.ok()) co_return std::move(tmp).status(); \
  lhs = *std::move(tmp)
#define CO_ASSIGN_OR_RETURN(lhs, expr) \
  SB_CO_ASSIGN_OR_RETURN(SB_CONCAT(sb_or_, __LINE__), lhs, expr)
// NOLINTEND(bugprone-macro-parentheses)
