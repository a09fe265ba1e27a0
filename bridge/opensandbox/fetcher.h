// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/fetcher.h — one request, its whole answer: the seam between OpenSandbox's protocol
// and the network, so that everything above it can be tested on a clock that stands still. Loop
// thread only.
#pragma once

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"
#include "bridge/net/http.h"
#include "bridge/net/task.h"

namespace bridge {

class Fetcher {
 public:
  virtual ~Fetcher() = default;
  // As net/http.h's Fetch: an HTTP error status is a success here.
  virtual Task<absl::StatusOr<HttpResponse>> Fetch(HttpRequest request, size_t max_body_bytes) = 0;
};

// `client` must outlive it.
class HttpFetcher final : public Fetcher {
 public:
  explicit HttpFetcher(HttpClient& client) : client_(client) {}
  Task<absl::StatusOr<HttpResponse>> Fetch(HttpRequest request, size_t max_body_bytes) override {
    return bridge::Fetch(client_, std::move(request), max_body_bytes);
  }

 private:
  HttpClient& client_;
};

}  // namespace bridge
