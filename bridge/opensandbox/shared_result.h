// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/shared_result.h — one value that one task makes and several others wait for.
// Loop thread only. Held by shared_ptr by all of them, so that none has to outlive another.
#pragma once

#include <algorithm>
#include <cassert>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bridge/net/task.h"

namespace bridge {

template <class T>
class SharedResult {
 public:
  bool ready() const { return value_.has_value(); }
  const T& value() const { return *value_; }

  // Once. Resumes the waiting tasks inside the call, in the order in which they came.
  void Set(T value) {
    assert(!value_);
    value_.emplace(std::move(value));
    // A resumed task may cancel another one, which then leaves the list by itself.
    while (!waiting_.empty()) {
      Waiter* next = waiting_.front();
      waiting_.erase(waiting_.begin());
      next->Notify(true);
    }
  }

  // A copy of the value; nullopt when the waiting task is cancelled before there is one.
  static Task<std::optional<T>> Wait(std::shared_ptr<SharedResult> self) {
    if (!self->value_) {
      Waiter waiter;
      self->waiting_.push_back(&waiter);
      (void)co_await waiter.Wait();
      std::erase(self->waiting_, &waiter);
    }
    co_return self->value_;
  }

 private:
  std::optional<T> value_;
  std::vector<Waiter*> waiting_;
};

}  // namespace bridge
