// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/http/router.h"

#include <algorithm>
#include <utility>

namespace bridge::local::http {
namespace {

std::vector<std::string> Split(std::string_view path) {
  std::vector<std::string> segments;
  if (!path.empty() && path.front() == '/') path.remove_prefix(1);
  while (true) {
    const size_t slash = path.find('/');
    segments.emplace_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return segments;
    path.remove_prefix(slash + 1);
  }
}

enum class Segment { kLiteral, kParam, kRest };

Segment KindOf(const std::string& segment) {
  if (segment.size() < 2 || segment.front() != '{' || segment.back() != '}') {
    return Segment::kLiteral;
  }
  return segment.ends_with("...}") ? Segment::kRest : Segment::kParam;
}

std::string NameOf(const std::string& segment) {
  const size_t tail = KindOf(segment) == Segment::kRest ? 4 : 1;
  return segment.substr(1, segment.size() - 1 - tail);
}

bool MatchSegments(const std::vector<std::string>& pattern, const std::vector<std::string>& path,
                   std::map<std::string, std::string>* params) {
  for (size_t i = 0; i < pattern.size(); ++i) {
    const Segment kind = KindOf(pattern[i]);
    if (kind == Segment::kRest) {
      if (i > path.size()) return false;
      std::string rest;
      for (size_t j = i; j < path.size(); ++j) rest += (j > i ? "/" : "") + path[j];
      if (params != nullptr) (*params)[NameOf(pattern[i])] = std::move(rest);
      return i < path.size();
    }
    if (i >= path.size()) return false;
    if (kind == Segment::kLiteral) {
      if (pattern[i] != path[i]) return false;
      continue;
    }
    if (path[i].empty()) return false;
    if (params != nullptr) (*params)[NameOf(pattern[i])] = path[i];
  }
  return pattern.size() == path.size();
}

// Does `a` describe fewer paths than `b`: literals before parameters before the rest?
bool MoreSpecific(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (KindOf(a[i]) != KindOf(b[i])) return KindOf(a[i]) < KindOf(b[i]);
  }
  return a.size() > b.size();
}

}  // namespace

bool MatchPattern(std::string_view pattern, std::string_view path,
                  std::map<std::string, std::string>* params) {
  return MatchSegments(Split(pattern), Split(path), params);
}

void Router::Add(std::string_view method, std::string_view pattern, Handler handler) {
  routes_.push_back(
      {std::string(method), std::string(pattern), Split(pattern), std::move(handler), false});
}

void Router::AddWebSocket(std::string_view pattern, Handler handler) {
  routes_.push_back({"GET", std::string(pattern), Split(pattern), std::move(handler), true});
}

Router::Match Router::Find(std::string_view method, std::string_view path, bool websocket) const {
  Match match;
  const Route* best = nullptr;
  const std::vector<std::string> segments = Split(path);
  for (const Route& route : routes_) {
    if (route.websocket && !websocket) continue;
    if (!MatchSegments(route.segments, segments, nullptr)) continue;
    if (route.method != "*" && route.method != method) {
      match.allowed.push_back(route.method);
      continue;
    }
    const bool better =
        best == nullptr || (route.websocket && !best->websocket) ||
        (route.websocket == best->websocket && MoreSpecific(route.segments, best->segments));
    if (better) best = &route;
  }
  if (best == nullptr) {
    if (!match.allowed.empty()) match.result = Match::Result::kWrongMethod;
    return match;
  }
  match.result = Match::Result::kFound;
  match.handler = &best->handler;
  match.pattern = best->pattern;
  MatchSegments(best->segments, segments, &match.params);
  match.allowed.clear();
  return match;
}

void Router::Handle(Exchange& exchange) const {
  Request& request = exchange.request();
  Match match = Find(request.method, request.path, exchange.IsWebSocket());
  if (match.result != Match::Result::kFound) {
    if (fallback_) fallback_(exchange, match.allowed);
    return;
  }
  request.params = std::move(match.params);
  (*match.handler)(exchange);
}

}  // namespace bridge::local::http
