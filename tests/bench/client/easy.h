// SPDX-License-Identifier: Apache-2.0
//
// tests/bench/client/easy.h — a handle of libcurl with the settings of a careful user.
#pragma once

#include <curl/curl.h>

#include <cstdint>
#include <string>

#include "tests/bench/client/direct.h"

namespace bridge::bench {

class Easy {
 public:
  explicit Easy(const DirectTarget& target) : handle_(curl_easy_init()) {
    for (const auto& header : target.headers) list_ = curl_slist_append(list_, header.c_str());
    list_ = curl_slist_append(list_, "Expect:");
    Set(CURLOPT_URL, target.url.c_str());
    Set(CURLOPT_HTTPHEADER, list_);
    Set(CURLOPT_PROXY, "");
    Set(CURLOPT_FAILONERROR, 1L);
    Set(CURLOPT_TCP_NODELAY, 1L);
    Set(CURLOPT_BUFFERSIZE, 256L << 10);
    Set(CURLOPT_NOSIGNAL, 1L);
  }
  ~Easy() {
    curl_slist_free_all(list_);
    curl_easy_cleanup(handle_);
  }
  Easy(const Easy&) = delete;
  Easy& operator=(const Easy&) = delete;

  template <class Value>
  void Set(CURLoption option, Value value) {
    curl_easy_setopt(handle_, option, value);
  }
  void OnBody(size_t (*take)(char*, size_t, size_t, void*), void* to) {
    Set(CURLOPT_WRITEFUNCTION, take);
    Set(CURLOPT_WRITEDATA, to);
  }
  void CountBody(int64_t* bytes) {
    const auto count = [](char*, size_t size, size_t count, void* to) -> size_t {
      *static_cast<int64_t*>(to) += static_cast<int64_t>(size * count);
      return size * count;
    };
    OnBody(count, bytes);
  }
  // Empty when all went well.
  std::string Perform() {
    const CURLcode code = curl_easy_perform(handle_);
    return code == CURLE_OK ? "" : curl_easy_strerror(code);
  }

  CURL* get() const { return handle_; }

 private:
  CURL* handle_;
  curl_slist* list_ = nullptr;
};

}  // namespace bridge::bench
