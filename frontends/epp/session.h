// SPDX-License-Identifier: Apache-2.0
//
// epp/session.h — the conversation with one host, from `initialize` to the end: who answers which
// method, what is under way, and how it all ends.
//
// Messages come from the reading thread and are handled on the loop; calls run side by side. The
// conversation ends by `shutdown`, by the end of input, by a host that takes no more output or by
// Terminate(). Each of them cancels what must not outlive us (a create, which removes its half-made
// sandbox, and commands that were not detached), lets short changes finish, and waits for what the
// bridge does about it. The host gives 2 s for the answer to `shutdown`, then 3 s to exit, then 3 s
// after SIGTERM; a host that is dead gives all the time there is.
#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "bridge/net/event_loop.h"
#include "frontends/epp/call.h"
#include "frontends/epp/input.h"
#include "frontends/epp/methods.h"
#include "frontends/epp/output.h"
#include "frontends/epp/rpc.h"

namespace bridge::epp {

struct SessionOptions {
  LinkFactory make_link;
  // How long `shutdown` may stay unanswered, and short changes run on.
  absl::Duration answer_shutdown_within = absl::Milliseconds(1800);
  // How long the end may take altogether.
  absl::Duration end_within = absl::Seconds(30);
};

class Session final : public InputReceiver {
 public:
  // All must outlive the session. `loop`'s thread handles everything.
  Session(EventLoop& loop, Output& output, PendingBytes& pending, SessionOptions options);
  // After WaitUntilOver().
  ~Session();

  // The reading thread.
  void OnMessage(Message message) override;
  void OnEndOfInput() override;

  // Ends the conversation as an end of input does. Any thread.
  void Terminate();

  // Returns when the conversation is over and everything that can be said is in the output. Not the
  // loop thread. True: nothing was left unfinished.
  bool WaitUntilOver();

 private:
  enum class State { kNew, kInitialized, kEnding };
  struct Running {
    Running(Environment& environment, grpc::CompletionQueue& queue, Message message,
            const MethodEntry& entry)
        : call(environment, queue, std::move(message)), method(entry) {}
    Call call;
    const MethodEntry& method;
    Json id;  // for comparing with what $/cancel names
  };

  void Handle(Message message);
  void HandleNotification(const Message& message);
  void Initialize(const Message& message);
  absl::StatusOr<Json> InitializeResult(const Json& params);
  void StartCall(Message message, const MethodEntry& method);
  Task<void> Run(Running& running);
  absl::Status Connect(Call& call);
  void OnCallOver(std::list<std::unique_ptr<Running>>::iterator position);

  void BeginEnd();
  void CancelCalls(bool all);
  void AnswerShutdown();
  void CheckIdle();

  void Reply(const Message& message, std::string line);

  EventLoop& loop_;
  Output& output_;
  PendingBytes& pending_;
  const SessionOptions options_;
  std::unique_ptr<CompletionThread> completions_;

  // --- Loop thread.
  State state_ = State::kNew;
  Environment environment_;
  std::list<std::unique_ptr<Running>> calls_;
  std::vector<std::string> shutdown_ids_;
  Timer shutdown_timer_;

  // --- WaitUntilOver() and the loop.
  std::mutex mu_;
  std::condition_variable changed_;
  bool ending_ = false;  // guarded by mu_
  bool idle_ = false;    // guarded by mu_: ending, and no call is left
};

}  // namespace bridge::epp
