// SPDX-License-Identifier: Apache-2.0
//
// What tasks, the loop and HTTP cost. On loopback and beside a blocking socket that does the same,
// so that the ratio means something on a noisy machine:
//   bazel run --config=opt //tests/bench:net_bench -- --benchmark_repetitions=5
#include <benchmark/benchmark.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "bridge/net/event_loop.h"
#include "bridge/net/event_stream.h"
#include "bridge/net/http.h"
#include "bridge/net/task.h"
#include "tests/fakes/raw_server.h"
#include "tests/fakes/run_task.h"

namespace bridge {
namespace {

constexpr std::string_view kEvent =
    R"({"type":"stdout","text":"a line of output as a build prints it","timestamp":1795970443283})"
    "\n\n";
constexpr int kEvents = 10'000;
constexpr size_t kDownload = 64u << 20;

Task<int> Ready(int value) { co_return value; }

void ReadyAwait(benchmark::State& state) {
  auto body = [&state]() -> Task<void> {
    int sum = 0;
    for (auto _ : state) sum += co_await Ready(1);
    benchmark::DoNotOptimize(sum);
  };
  Spawn(nullptr, body, [] {});
}
BENCHMARK(ReadyAwait);

void SuspendAndResume(benchmark::State& state) {
  Waiter waiter;
  bool stop = false;
  auto body = [&]() -> Task<void> {
    while (!stop) (void)co_await waiter.Wait();
  };
  Spawn(nullptr, body, [] {});
  for (auto _ : state) waiter.Notify(true);
  stop = true;
  waiter.Notify(true);
}
BENCHMARK(SuspendAndResume);

void PostFromTheLoop(benchmark::State& state) {
  EventLoop loop;
  RunTask(loop, [&]() -> Task<void> {
    for (auto _ : state) co_await loop.Yield();
  });
}
BENCHMARK(PostFromTheLoop);

void PostAndWaitFromAnotherThread(benchmark::State& state) {
  EventLoop loop;
  for (auto _ : state) loop.RunAndWait([] {});
}
BENCHMARK(PostAndWaitFromAnotherThread)->MeasureProcessCPUTime()->UseRealTime();

// Answers every request with the same bytes.
RawServer::Script Always(std::string answer) {
  return [answer = std::move(answer)](RawConnection& peer) {
    while (!peer.ReadHead().empty()) peer.Write(answer);
  };
}

std::string Sized(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

int ConnectTo(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) std::abort();
  return fd;
}

// The floor: the same bytes by a blocking socket.
void BlockingGet(benchmark::State& state) {
  const std::string answer = Sized(std::string(200, 'x'));
  RawServer server(Always(answer));
  const int fd = ConnectTo(server.port());
  const std::string request = "GET / HTTP/1.1\r\nHost: h\r\nAccept: */*\r\n\r\n";
  std::string buffer(answer.size(), '\0');
  for (auto _ : state) {
    if (::send(fd, request.data(), request.size(), 0) < 0) std::abort();
    for (size_t got = 0; got < buffer.size();) {
      const ssize_t n = ::recv(fd, buffer.data() + got, buffer.size() - got, 0);
      if (n <= 0) std::abort();
      got += static_cast<size_t>(n);
    }
  }
  ::close(fd);
}
BENCHMARK(BlockingGet)->MeasureProcessCPUTime()->UseRealTime();

void FetchGet(benchmark::State& state) {
  RawServer server(Always(Sized(std::string(200, 'x'))));
  EventLoop loop;
  HttpClient client(loop);
  RunTask(loop, [&]() -> Task<void> {
    const HttpRequest request{.url = server.Url()};
    for (auto _ : state) {
      const auto response = co_await Fetch(client, request, 1000);
      if (!response.ok() || response->body.size() != 200) std::abort();
    }
  });
}
BENCHMARK(FetchGet)->MeasureProcessCPUTime()->UseRealTime();

// An exec: ten thousand events, each in a chunk of its own, read and taken apart.
void EventsOverHttp(benchmark::State& state) {
  std::string answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  char size[16];
  std::snprintf(size, sizeof(size), "%zx\r\n", kEvent.size());
  for (int i = 0; i < kEvents; ++i) answer += size + std::string(kEvent) + "\r\n";
  RawServer server(Always(answer + "0\r\n\r\n"));
  EventLoop loop;
  HttpClient client(loop);
  RunTask(loop, [&]() -> Task<void> {
    const std::string url = server.Url();
    for (auto _ : state) {
      Transfer transfer(client, {.url = url});
      EventStreamParser parser;
      std::string chunk;
      std::string_view text;
      int events = 0;
      while (co_await transfer.Read(&chunk)) {
        parser.Feed(chunk);
        while (parser.Next(&text)) ++events;
      }
      if (events != kEvents) std::abort();
    }
  });
  state.SetItemsProcessed(state.iterations() * kEvents);
}
BENCHMARK(EventsOverHttp)->MeasureProcessCPUTime()->UseRealTime();

void ParseEvents(benchmark::State& state) {
  std::string stream;
  for (int i = 0; i < kEvents; ++i) stream += kEvent;
  for (auto _ : state) {
    EventStreamParser parser;
    std::string_view text;
    for (size_t at = 0; at < stream.size(); at += 64 * 1024) {
      parser.Feed(std::string_view(stream).substr(at, 64 * 1024));
      while (parser.Next(&text)) benchmark::DoNotOptimize(text);
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(stream.size()));
}
BENCHMARK(ParseEvents);

void BlockingDownload(benchmark::State& state) {
  const std::string answer = Sized(std::string(kDownload, 'd'));
  RawServer server(Always(answer));
  const int fd = ConnectTo(server.port());
  std::string buffer(256 * 1024, '\0');
  for (auto _ : state) {
    if (::send(fd, "GET / HTTP/1.1\r\n\r\n", 18, 0) < 0) std::abort();
    for (size_t got = 0; got < answer.size();) {
      const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), 0);
      if (n <= 0) std::abort();
      got += static_cast<size_t>(n);
    }
  }
  ::close(fd);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(kDownload));
}
BENCHMARK(BlockingDownload)->MeasureProcessCPUTime()->UseRealTime();

void Download(benchmark::State& state) {
  RawServer server(Always(Sized(std::string(kDownload, 'd'))));
  EventLoop loop;
  HttpClient client(loop);
  RunTask(loop, [&]() -> Task<void> {
    const std::string url = server.Url();
    for (auto _ : state) {
      Transfer transfer(client, {.url = url,
                                 .chunk_bytes = 256 * 1024,
                                 .whole_chunks = true,
                                 .receive_buffer = 256 * 1024});
      std::string chunk;
      size_t got = 0;
      while (co_await transfer.Read(&chunk)) got += chunk.size();
      if (got != kDownload) std::abort();
    }
  });
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(kDownload));
}
BENCHMARK(Download)->MeasureProcessCPUTime()->UseRealTime();

}  // namespace
}  // namespace bridge

BENCHMARK_MAIN();
