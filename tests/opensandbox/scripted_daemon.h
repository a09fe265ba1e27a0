// SPDX-License-Identifier: Apache-2.0
//
// tests/opensandbox/scripted_daemon.h — a stock daemon whose answer to POST /command is the test's,
// byte by byte.
#pragma once

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "tests/fakes/raw_server.h"

namespace bridge {

inline constexpr char kHead[] =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
inline constexpr char kInit[] = "{\"type\":\"init\",\"text\":\"0123\",\"timestamp\":1}\n\n";
inline constexpr char kComplete[] = "{\"type\":\"execution_complete\",\"timestamp\":1}\n\n";

inline std::string Chunk(std::string_view text) {
  char size[32];
  snprintf(size, sizeof(size), "%zx\r\n", text.size());
  return size + std::string(text) + "\r\n";
}

inline std::string Json(int status, std::string_view body) {
  return "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Type: application/json\r\n" +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

// Our own daemon's answer to the start of an exec, or to a resume, begins so.
inline constexpr char kFramesHead[] =
    "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.sandbox.frames.v1\r\n"
    "Transfer-Encoding: chunked\r\n\r\n";

// Reads such a request (POST /v1/exec, GET /v1/exec/{id}/output) and answers the text of the
// STARTED frame that is due.
inline std::string ReadExecRequest(RawConnection& peer) {
  const std::string head = peer.ReadHead();
  const size_t length = head.find("Content-Length: ");
  const std::string text = length == std::string::npos
                               ? head
                               : peer.Read(static_cast<size_t>(atoi(head.c_str() + length + 16)));
  const std::string before = length == std::string::npos ? "/v1/exec/" : "\"exec_id\":\"";
  const size_t at = text.find(before);
  if (at == std::string::npos) return "{}";
  const size_t id = at + before.size();
  return R"({"pid":7,"exec_id":")" + text.substr(id, text.find_first_of("\"/", id) - id) + "\"}";
}

// The size of a file, as GET /files/info tells it.
inline std::string FileSizeJson(const std::string& path, int64_t size) {
  return "\"" + path + "\":{\"path\":\"" + path + "\",\"size\":" + std::to_string(size) +
         ",\"modified_at\":\"2026-01-01T00:00:00Z\",\"created_at\":\"2026-01-01T00:00:00Z\"," +
         "\"owner\":\"root\",\"group\":\"root\",\"mode\":600}";
}

// A stock daemon with a writable directory, whose POST /command is the test's. Every other route
// has the answer that the test gave it, else 404.
class ScriptedDaemon {
 public:
  using Command = std::function<void(RawConnection&)>;
  explicit ScriptedDaemon(Command command)
      : command_(std::move(command)), server_([this](RawConnection& peer) { Serve(peer); }) {}

  std::string url() const { return server_.Url(""); }
  int posts() const { return posts_; }
  std::string post_body() const { return post_body_; }
  // The answer to a request under /files; called by the connections' threads.
  std::function<std::string(const std::string& head)> files;
  std::string status_answer = Json(404, "{\"code\":\"INVALID_REQUEST_BODY\"}");

 private:
  void Serve(RawConnection& peer) {
    while (true) {
      const std::string head = peer.ReadHead();
      if (head.empty()) return;
      const size_t at = head.find("Content-Length: ");
      const std::string body = at == std::string::npos
                                   ? ""
                                   : peer.Read(static_cast<size_t>(atoi(head.c_str() + at + 16)));
      if (head.rfind("POST /command ", 0) == 0) {
        // The probe of a new sandbox is not what is tested here.
        if (body.find("sandbox-bridge-probe") != std::string::npos) {
          peer.Write(kHead + Chunk(kInit) +
                     Chunk("{\"type\":\"stdout\",\"text\":\"a\"}\n\n"
                           "{\"type\":\"stdout\",\"text\":\"\\n\"}\n\n"
                           "{\"type\":\"stdout\",\"text\":\"b\"}\n\n"
                           "{\"type\":\"stdout\",\"text\":\"bash\"}\n\n"
                           "{\"type\":\"stdout\",\"text\":\"/tmp\"}\n\n") +
                     Chunk(kComplete) + "0\r\n\r\n");
          continue;
        }
        ++posts_;
        post_body_ = body;
        command_(peer);
        return;
      }
      if (files && head.rfind("GET /files/", 0) == 0) {
        peer.Write(files(head));
        continue;
      }
      peer.Write(head.find("/command/status/") != std::string::npos ? status_answer
                                                                    : Json(404, "{}"));
    }
  }

  const Command command_;
  std::atomic<int> posts_{0};
  std::string post_body_;
  RawServer server_;
};

// A whole answer: the id, then `events`.
inline std::string Stream(std::string_view events) {
  return kHead + Chunk(kInit) + Chunk(events) + "0\r\n\r\n";
}

}  // namespace bridge
