// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/resource_usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bridge/net/event_loop.h"
#include "tests/fakes/fixed_directory.h"
#include "tests/fakes/raw_server.h"
#include "tests/fakes/run_task.h"
#include "tests/fakes/status_matchers.h"
#include "tests/opensandbox/recorded_answers.h"

namespace bridge {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

std::string Head(std::string_view headers) {
  return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + std::string(headers) +
         "\r\n\r\n";
}
std::string Chunk(std::string_view text) {
  char size[32];
  std::snprintf(size, sizeof size, "%zx\r\n", text.size());
  return size + std::string(text) + "\r\n";
}

class ResourceUsageTest : public ::testing::Test {
 protected:
  // Reads the usage from a daemon of this script.
  absl::StatusOr<ResourceSample> Read(RawServer::Script script) {
    RawServer server(std::move(script));
    FixedDirectory directory(server.Url(""));
    DaemonClient client(http_, directory);
    return RunTask(loop_, [&] { return ReadResourceUsage(client, {}, "sb-1", ""); });
  }
  // Opens a watch and takes up to `samples`; the last status is what ended it.
  absl::Status Watch(RawServer::Script script, size_t samples, std::vector<ResourceSample>* out) {
    RawServer server(std::move(script));
    FixedDirectory directory(server.Url(""));
    DaemonClient client(http_, directory);
    return RunTask(loop_, [&]() -> Task<absl::Status> {
      ResourceWatch watch(client, {}, "sb-1", "");
      absl::Status status = co_await watch.Open();
      while (status.ok() && out->size() < samples) {
        const auto sample = co_await watch.Next();
        status = sample.status();
        if (sample.ok()) out->push_back(*sample);
      }
      co_return status;
    });
  }

  EventLoop loop_;
  HttpClient http_{loop_};
};

TEST_F(ResourceUsageTest, OneSample) {
  std::string head;
  const auto sample = Read([&head](RawConnection& peer) {
    head = peer.ReadHead();
    const std::string& body = Recorded("metrics").body;
    peer.Write("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
               body);
  });
  ASSERT_THAT(sample, IsOk());
  EXPECT_EQ(sample->cpu_count, 2);
  EXPECT_EQ(sample->memory_total_bytes, 25276514304);
  EXPECT_THAT(head, HasSubstr("GET /metrics HTTP/1.1\r\n"));
}

TEST_F(ResourceUsageTest, RefusalsAndNonsense) {
  EXPECT_THAT(Read([](RawConnection& peer) {
                peer.ReadHead();
                peer.Write("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
              }),
              HasReason("UPSTREAM_UNAUTHENTICATED"));
  EXPECT_THAT(Read([](RawConnection& peer) {
                peer.ReadHead();
                peer.Write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
              }),
              HasReason("UPSTREAM_PROTOCOL"));
}

TEST_F(ResourceUsageTest, WatchesWhatWasRecorded) {
  // Three objects, each followed by one newline, then the daemon goes away.
  std::vector<ResourceSample> samples;
  const absl::Status status = Watch(
      [](RawConnection& peer) {
        peer.ReadHead();
        peer.Write(Head("Transfer-Encoding: chunked"));
        peer.Write(Chunk(Recorded("metrics-watch").body));
        peer.Write("0\r\n\r\n");
      },
      10, &samples);
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples[0].at, absl::FromUnixMillis(1795970676647));
  EXPECT_EQ(samples[2].at, absl::FromUnixMillis(1795970680648));
  // A watch has no end of its own.
  EXPECT_THAT(status, AnyOf(HasReason("SANDBOX_UNREACHABLE"), HasReason("UPSTREAM_UNAVAILABLE")));
}

TEST_F(ResourceUsageTest, HoweverTheStreamIsCut) {
  const std::string line =
      R"({"cpu_count":2,"cpu_used_pct":1,"mem_total_mib":1024,"mem_used_mib":512,"timestamp":7})";
  const std::string body = line + "\ndata: " + line + "\n\n" + line + "\r\n";
  for (size_t cut = 1; cut < body.size(); cut += 7) {
    std::vector<ResourceSample> samples;
    const absl::Status status = Watch(
        [&](RawConnection& peer) {
          peer.ReadHead();
          peer.Write(Head("Transfer-Encoding: chunked"));
          peer.Write(Chunk(body.substr(0, cut)));
          peer.Write(Chunk(body.substr(cut)));
          peer.AwaitClose();
        },
        3, &samples);
    EXPECT_THAT(status, IsOk()) << cut;
    EXPECT_EQ(samples.size(), 3u) << cut;
  }
}

TEST_F(ResourceUsageTest, ABrokenStreamIsAFailure) {
  std::vector<ResourceSample> samples;
  EXPECT_FALSE(Watch(
                   [](RawConnection& peer) {
                     peer.ReadHead();
                     peer.Write(Head("Transfer-Encoding: chunked"));
                     peer.Reset();
                   },
                   1, &samples)
                   .ok());
  EXPECT_THAT(Watch(
                  [](RawConnection& peer) {
                    peer.ReadHead();
                    peer.Write(Head("Transfer-Encoding: chunked"));
                    peer.Write(Chunk("nonsense\n"));
                    peer.AwaitClose();
                  },
                  1, &samples),
              HasReason("UPSTREAM_PROTOCOL"));
  EXPECT_TRUE(samples.empty());
}

TEST_F(ResourceUsageTest, AWatchThatIsRefused) {
  std::vector<ResourceSample> samples;
  EXPECT_THAT(Watch(
                  [](RawConnection& peer) {
                    peer.ReadHead();
                    peer.Write("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
                  },
                  1, &samples),
              HasReason("UPSTREAM_PERMISSION_DENIED"));
}

}  // namespace
}  // namespace bridge
