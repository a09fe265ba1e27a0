// SPDX-License-Identifier: Apache-2.0
//
// local/http/router.h — finds the handler of a method and a path.
//
// A pattern is a path of literal segments and "{name}" segments (one segment, not empty); a last
// "{name...}" takes the rest, slashes included, and may be empty. Literal segments win over
// parameters, in every position from the left. Patterns match the *decoded* path, as both imitated
// servers do. Build it, then share it: Find and Handle are const and may run in any thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bridge/local/http/exchange.h"

namespace bridge::local::http {

class Router {
 public:
  struct Match {
    enum class Result { kFound, kWrongMethod, kNotFound };
    Result result = Result::kNotFound;
    const Handler* handler = nullptr;
    std::string pattern;  // of the route that was found
    std::map<std::string, std::string> params;
    std::vector<std::string> allowed;  // methods of that path, when the method is wrong
  };

  // method "*" = any. `websocket` routes match WebSocket handshakes only, and win there.
  void Add(std::string_view method, std::string_view pattern, Handler handler);
  void AddWebSocket(std::string_view pattern, Handler handler);
  // Called with `allowed` methods on a wrong method, without on an unknown path.
  using Fallback = std::function<void(Exchange&, const std::vector<std::string>& allowed)>;
  void SetFallback(Fallback fallback) { fallback_ = std::move(fallback); }

  Match Find(std::string_view method, std::string_view path, bool websocket = false) const;
  // Fills request().params and runs the handler, or the fallback.
  void Handle(Exchange& exchange) const;

 private:
  struct Route {
    std::string method;
    std::string pattern;
    std::vector<std::string> segments;
    Handler handler;
    bool websocket = false;
  };
  std::vector<Route> routes_;
  Fallback fallback_;
};

// Does `path` fit `pattern`? The parameters go to *params (may be null).
bool MatchPattern(std::string_view pattern, std::string_view path,
                  std::map<std::string, std::string>* params);

}  // namespace bridge::local::http
