// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/call.h"

#include <cassert>

namespace bridge::epp {

void Call::Answer(std::string line) {
  assert(!answered_);
  if (std::exchange(answered_, true)) return;
  environment_.output.Write(std::move(line));
  if (on_answer) on_answer(TakeBytes());
}

Task<bool> Call::OutputRoom() {
  // Kept by the callback too: the output may call back long after a cancelled call is gone.
  struct Wait {
    Waiter waiter;
    bool ready = false;
  };
  Output& output = environment_.output;
  if (output.pending_bytes() <= Output::kHighWatermarkBytes) co_return true;
  auto wait = std::make_shared<Wait>();
  EventLoop& loop = environment_.loop;
  output.OnDrained([wait, &loop] {
    loop.Post([wait] {
      wait->ready = true;
      wait->waiter.Notify(true);
    });
  });
  bool alive = !co_await Cancelled();
  while (alive && !wait->ready) alive = co_await wait->waiter.Wait();
  co_return alive;
}

}  // namespace bridge::epp
