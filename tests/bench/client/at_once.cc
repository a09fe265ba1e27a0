// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/client/at_once.h"

#include <curl/curl.h>
#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <deque>
#include <mutex>

#include "sandbox/bridge/v1/sandboxes.grpc.pb.h"
#include "tests/bench/client/easy.h"

namespace bridge::bench {
namespace {

namespace v1 = sandbox::bridge::v1;

// Keeps its calls in flight: each one that ends starts the next.
class GrpcCalls {
 public:
  GrpcCalls(const std::shared_ptr<grpc::Channel>& channel, const std::string& sandbox_id, int calls)
      : stub_(v1::SandboxService::NewStub(channel)), left_to_start_(calls), left_to_end_(calls) {
    request_.set_sandbox_id(sandbox_id);
  }

  Sample Run(int in_flight) {
    const double start = Now();
    for (int i = 0; i < in_flight; ++i) StartNext();
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return left_to_end_ == 0; });
    sample_.seconds = Now() - start;
    return std::move(sample_);
  }

 private:
  struct One {
    grpc::ClientContext context;
    v1::Sandbox sandbox;
  };

  void StartNext() {
    {
      const std::lock_guard lock(mutex_);
      if (left_to_start_ == 0) return;
      --left_to_start_;
    }
    auto* one = new One;
    stub_->async()->GetSandbox(&one->context, &request_, &one->sandbox,
                               [this, one](const grpc::Status& status) {
                                 delete one;
                                 StartNext();
                                 End(status);
                               });
  }

  void End(const grpc::Status& status) {
    const std::lock_guard lock(mutex_);
    ++sample_.items;
    if (!status.ok()) sample_.Fail(status.error_message());
    if (--left_to_end_ == 0) ended_.notify_one();  // under the lock: the waiter destroys this
  }

  const std::unique_ptr<v1::SandboxService::Stub> stub_;
  v1::GetSandboxRequest request_;
  std::mutex mutex_;
  std::condition_variable ended_;
  int left_to_start_;
  int left_to_end_;
  Sample sample_;
};

}  // namespace

Sample DirectAtOnce(const DirectTarget& target, int calls, int in_flight) {
  Sample sample;
  int64_t bytes = 0;
  const std::unique_ptr<CURLM, decltype(&curl_multi_cleanup)> multi(curl_multi_init(),
                                                                    &curl_multi_cleanup);
  std::deque<Easy> easies;
  const double start = Now();
  int left_to_start = calls;
  for (; left_to_start > calls - in_flight && left_to_start > 0; --left_to_start) {
    easies.emplace_back(target).CountBody(&bytes);
    curl_multi_add_handle(multi.get(), easies.back().get());
  }
  for (int running = 1; running > 0;) {
    curl_multi_perform(multi.get(), &running);
    int queued = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi.get(), &queued)) {
      CURL* easy = message->easy_handle;
      const CURLcode code = message->data.result;  // the message dies with the handle's removal
      ++sample.items;
      if (code != CURLE_OK) sample.Fail(curl_easy_strerror(code));
      curl_multi_remove_handle(multi.get(), easy);
      if (left_to_start == 0) continue;
      --left_to_start;
      curl_multi_add_handle(multi.get(), easy);
      running = 1;
    }
    if (running > 0) curl_multi_poll(multi.get(), nullptr, 0, 1000, nullptr);
  }
  for (Easy& easy : easies) curl_multi_remove_handle(multi.get(), easy.get());
  sample.seconds = Now() - start;
  if (sample.items != calls || bytes == 0) sample.Fail("answers are missing or empty");
  return sample;
}

Sample GrpcAtOnce(const std::shared_ptr<grpc::Channel>& channel, const std::string& sandbox_id,
                  int calls, int in_flight) {
  return GrpcCalls(channel, sandbox_id, calls).Run(in_flight);
}

}  // namespace bridge::bench
