// SPDX-License-Identifier: Apache-2.0
//
// tests/fakes/raw_server.h — a peer whose every byte the test decides: real sockets on loopback, a
// thread and a script for each connection, no HTTP of its own.
//
//   RawServer server([](RawConnection& peer) {
//     peer.ReadHead();
//     peer.Write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
//   });
//   ... server.Url("/path") ...
//
// A script that waits in vain for ten seconds fails the test.
#pragma once

#include <openssl/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/fakes/test_certificate.h"

namespace bridge {

class RawConnection {
 public:
  RawConnection(int fd, int index, SSL_CTX* tls);  // `tls` may be null
  ~RawConnection();
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  int index() const { return index_; }  // the how-manieth connection this is, from 0

  // A request's head, with the empty line; "" when the peer closed. What follows stays for later.
  std::string ReadHead();
  std::string Read(size_t bytes);  // exactly so many, fewer only at the end
  std::string ReadToEnd();         // until the peer closes
  std::string ReadSome();          // what is there next; "" at the end
  // A body in chunked coding, decoded.
  std::string ReadChunkedBody();

  bool Write(std::string_view bytes);  // all; false: the peer is gone
  size_t WriteUntilFull();             // until nothing more is taken for 200 ms; how much that was
  void EndWriting();                   // FIN
  void Reset();                        // RST, whatever is buffered
  void Close();
  // Passes everything on to a port of 127.0.0.1 and back until one side ends, or, as proxies do,
  // until nothing went either way for `idle`.
  void RelayTo(int port, std::chrono::milliseconds idle = std::chrono::milliseconds(-1));
  // Waits until the peer closed or reset the connection, reading what comes.
  void AwaitClose() { (void)ReadToEnd(); }

 private:
  bool Fill();

  int fd_;
  const int index_;
  SSL* tls_ = nullptr;
  std::string buffer_;
};

class RawServer {
 public:
  enum class Family { kIpv4, kIpv6 };
  using Script = std::function<void(RawConnection&)>;

  explicit RawServer(Script script, Family family = Family::kIpv4);
  // Speaks TLS with this certificate; the script sees the plain bytes.
  RawServer(const TestCertificate& certificate, Script script);
  ~RawServer();  // breaks all connections, then waits for the scripts
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;

  int port() const { return port_; }
  std::string Url(std::string_view path = "/") const;  // http or https, as it is
  int accepted() const { return accepted_; }
  // Waits until every script that was started has returned, so that what it noted can be looked at.
  void AwaitScripts();

 private:
  RawServer(Script script, Family family, SSL_CTX* tls);
  void Serve();

  const Script script_;
  SSL_CTX* const tls_;
  int port_ = 0;  // before the listener, which sets it
  const int listener_;
  std::atomic<int> accepted_{0};
  std::mutex mu_;
  bool stopping_ = false;  // guarded by mu_
  int running_ = 0;        // guarded by mu_: scripts
  std::condition_variable idle_;
  std::vector<int> open_;             // guarded by mu_: copies of the descriptors, to break them
  std::vector<std::thread> scripts_;  // the accepting thread's
  std::thread accepting_;
};

// A port of 127.0.0.1 on which nobody listens as long as this lives.
class ClosedPort {
 public:
  ClosedPort();
  ~ClosedPort();
  ClosedPort(const ClosedPort&) = delete;
  ClosedPort& operator=(const ClosedPort&) = delete;
  int port() const { return port_; }

 private:
  int port_ = 0;
  const int fd_;
};

// A port of 127.0.0.1 that never completes a connection: its queue is full.
class SilentPort {
 public:
  SilentPort();
  ~SilentPort();
  SilentPort(const SilentPort&) = delete;
  SilentPort& operator=(const SilentPort&) = delete;
  int port() const { return port_; }

 private:
  int port_ = 0;
  const int fd_;
  std::vector<int> fillers_;
};

bool HasIpv6Loopback();

}  // namespace bridge
