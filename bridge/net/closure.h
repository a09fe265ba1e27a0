// SPDX-License-Identifier: Apache-2.0
//
// net/closure.h — a callable that runs at most once and is moved, never copied. Up to 48 bytes of
// captures need no allocation. Not thread-safe; give it away by moving it.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace bridge {

class Closure {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, Closure>)
  Closure(F&& f) {  // NOLINT(google-explicit-constructor): lambdas are passed as closures
    using Callable = std::remove_cvref_t<F>;
    if constexpr (sizeof(Callable) <= kInlineBytes &&
                  alignof(Callable) <= alignof(std::max_align_t) &&
                  std::is_nothrow_move_constructible_v<Callable>) {
      new (store_) Callable(std::forward<F>(f));
      ops_ = &kOps<Callable>;
    } else {
      using Boxed = Box<Callable>;
      new (store_) Boxed{std::make_unique<Callable>(std::forward<F>(f))};
      ops_ = &kOps<Boxed>;
    }
  }
  Closure(Closure&& other) noexcept { TakeFrom(other); }
  Closure& operator=(Closure&& other) noexcept {
    if (this != &other) {
      Reset();
      TakeFrom(other);
    }
    return *this;
  }
  ~Closure() { Reset(); }

  // Calls it and destroys its captures. Once.
  void Run() {
    assert(ops_ != nullptr);
    ops_->run(store_);
    Reset();
  }

 private:
  static constexpr size_t kInlineBytes = 48;

  struct Ops {
    void (*run)(void* self);
    void (*move)(void* from, void* to) noexcept;  // null: copying the bytes is moving
    void (*destroy)(void* self) noexcept;         // null: nothing to do
  };
  template <class F>
  struct Box {
    std::unique_ptr<F> callable;
    void operator()() { (*callable)(); }
  };

  template <class F>
  static void RunAs(void* self) {
    (*static_cast<F*>(self))();
  }
  template <class F>
  static void MoveAs(void* from, void* to) noexcept {
    new (to) F(std::move(*static_cast<F*>(from)));
    static_cast<F*>(from)->~F();
  }
  template <class F>
  static void DestroyAs(void* self) noexcept {
    static_cast<F*>(self)->~F();
  }
  template <class F>
  static constexpr Ops kOps = {
      &RunAs<F>,
      std::is_trivially_copyable_v<F> ? nullptr : &MoveAs<F>,
      std::is_trivially_destructible_v<F> ? nullptr : &DestroyAs<F>,
  };

  void TakeFrom(Closure& other) noexcept {
    ops_ = std::exchange(other.ops_, nullptr);
    if (ops_ == nullptr) return;
    if (ops_->move != nullptr) {
      ops_->move(other.store_, store_);
    } else {
      std::memcpy(store_, other.store_, kInlineBytes);
    }
  }
  void Reset() noexcept {
    const Ops* ops = std::exchange(ops_, nullptr);
    if (ops != nullptr && ops->destroy != nullptr) ops->destroy(store_);
  }

  const Ops* ops_ = nullptr;
  alignas(std::max_align_t) unsigned char store_[kInlineBytes];
};

}  // namespace bridge
