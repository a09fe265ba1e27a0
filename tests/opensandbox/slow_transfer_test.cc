// SPDX-License-Identifier: Apache-2.0
//
// Big files on slow ways: 100 MiB at 1 MiB/s, both ways, on our own daemon's routes and on the
// stock ones. A limit on the whole of a request would cut them; the clock is the test's.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>

#include "bridge/base/clock.h"
#include "bridge/base/sha256.h"
#include "bridge/net/event_loop.h"
#include "bridge/net/http.h"
#include "bridge/net/task_scope.h"
#include "bridge/opensandbox/capabilities.h"
#include "bridge/opensandbox/file_client.h"
#include "tests/fakes/fixed_directory.h"
#include "tests/fakes/raw_server.h"
#include "tests/fakes/run_task.h"

namespace bridge {
namespace {

constexpr int kPieces = 100;  // one a second
constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr size_t kChunkBytes = size_t{256} << 10;

// How far something has come, for others to wait for.
class Progress {
 public:
  void Add(size_t more) {
    const std::lock_guard lock(mu_);
    count_ += more;
    changed_.notify_all();
  }
  void Release() {
    const std::lock_guard lock(mu_);
    released_ = true;
    changed_.notify_all();
  }
  void AwaitAtLeast(size_t count) {
    std::unique_lock lock(mu_);
    const bool came = changed_.wait_for(lock, std::chrono::minutes(1),
                                        [&] { return released_ || count_ >= count; });
    EXPECT_TRUE(came) << count_ << " of " << count;
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  size_t count_ = 0;
  bool released_ = false;
};

std::string Piece(int number) {
  std::string piece(kPieceBytes, static_cast<char>(number));
  piece.replace(0, 8, "piece" + std::to_string(number + 100));
  return piece;
}

std::string WholeDigest() {
  Sha256 digest;
  for (int i = 0; i < kPieces; ++i) digest.Update(Piece(i));
  return digest.FinishHex();
}

std::string JsonAnswer(int status, const std::string& body) {
  return "HTTP/1.1 " + std::to_string(status) +
         " X\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

class SlowTransfers : public ::testing::TestWithParam<bool> {
 protected:
  // Serves one connection, on which requests follow each other.
  void Serve(RawConnection& peer) {
    while (true) {
      const std::string head = peer.ReadHead();
      if (head.empty()) return;
      if (head.find("GET /files/info") == 0) {
        peer.Write(download_ ? JsonAnswer(200, StockInfo()) : JsonAnswer(404, kNotThere));
      } else if (head.find("GET ") == 0) {
        SendSlowly(peer);
      } else {
        TakeSlowly(peer, head);
      }
    }
  }
  void SendSlowly(RawConnection& peer) {
    peer.Write("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(kPieces * kPieceBytes) +
               "\r\nSandbox-File-Info: {\"type\":\"file\",\"size\":" +
               std::to_string(kPieces * kPieceBytes) + ",\"mode\":420}\r\n\r\n");
    for (int i = 0; i < kPieces; ++i) {
      seconds_.AwaitAtLeast(static_cast<size_t>(i));
      if (!peer.Write(Piece(i))) return;
      sent_.Add(kPieceBytes);
    }
  }
  // The body has a length that is known: ours is announced by the query, a stock one's by its
  // header.
  void TakeSlowly(RawConnection& peer, const std::string& head) {
    if (head.find("Expect: 100-continue") != std::string::npos) {
      peer.Write("HTTP/1.1 100 Continue\r\n\r\n");
    }
    const bool chunked = head.find("chunked") != std::string::npos;
    // Chunked coding adds a little; what counts here is that it is all taken.
    for (int i = 0; i < kPieces; ++i) {
      seconds_.AwaitAtLeast(static_cast<size_t>(i));
      body_ += peer.Read(kPieceBytes);
      sent_.Add(kPieceBytes);
    }
    const std::string end = chunked ? "0\r\n\r\n" : "--\r\n";
    while (!body_.ends_with(end)) {
      const std::string more = peer.ReadSome();
      if (more.empty()) return;
      body_ += more;
    }
    peer.Write(
        JsonAnswer(200, "{\"path\":\"/f\",\"size\":" + std::to_string(kPieces * kPieceBytes) +
                            ",\"sha256\":\"" + WholeDigest() + "\"}"));
  }
  std::string StockInfo() const {
    return "{\"/f\":{\"path\":\"/f\",\"type\":\"file\",\"size\":" +
           std::to_string(kPieces * kPieceBytes) + ",\"mode\":644}}";
  }
  void Start(bool download) {
    download_ = download;
    auto probed = std::make_shared<DaemonCapabilities>();
    probed->scratch = "/tmp";
    probed->exec = probed->file_read = probed->file_write = GetParam();
    directory_.daemon()->probed = probed;
  }
  // Also a transfer that was cut is over: nobody waits for what will not come.
  void End(Signal& ended) {
    sent_.Release();
    read_.Release();
    ended.Raise();
  }
  // A second for each piece, once it has left.
  void LetTimePass() {
    for (int i = 0; i < kPieces; ++i) {
      sent_.AwaitAtLeast(static_cast<size_t>(i + 1) * kPieceBytes);
      if (i > 0 && download_) read_.AwaitAtLeast(static_cast<size_t>(i - 1) * kPieceBytes);
      loop_.RunAndWait([] {});
      clock_.Advance(absl::Seconds(1));
      seconds_.Add(1);
    }
  }

  static constexpr char kNotThere[] = R"({"code":"FILE_NOT_FOUND","message":"file not found"})";
  FakeClock clock_;
  EventLoop loop_{clock_};
  HttpClient http_{loop_};
  TaskScope background_;
  bool download_ = false;
  std::string body_;
  Progress seconds_, sent_, read_;
  RawServer server_{[this](RawConnection& peer) { Serve(peer); }};
  FixedDirectory directory_{"http://127.0.0.1:" + std::to_string(server_.port())};
  DaemonClient daemon_{http_, directory_};
  FileClient files_{daemon_, background_};
};

INSTANTIATE_TEST_SUITE_P(Daemons, SlowTransfers, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "own" : "stock"; });

TEST_P(SlowTransfers, ADownloadIsNotCut) {
  Start(/*download=*/true);
  absl::Status status = absl::UnknownError("did not end");
  Sha256 digest;
  Signal ended;
  loop_.Post([&] {
    Spawn(
        nullptr,
        [&]() -> Task<void> {
          const CallContext context;
          const SandboxTarget box{"box", ""};
          auto reader = co_await files_.Read(context, box, "/f", 0, std::nullopt);
          status = reader.status();
          std::string chunk;
          bool more = reader.ok();
          while (more) {
            const absl::StatusOr<bool> next = co_await (*reader)->Next(&chunk);
            status = next.status();
            more = next.ok() && *next;
            if (!more) break;
            digest.Update(chunk);
            read_.Add(chunk.size());
          }
        },
        [&] { End(ended); });
  });
  LetTimePass();
  ended.Await();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(digest.FinishHex(), WholeDigest());
}

TEST_P(SlowTransfers, AnUploadIsNotCut) {
  Start(/*download=*/false);
  absl::StatusOr<FileWritten> written = absl::UnknownError("did not end");
  Signal ended;
  loop_.Post([&] {
    Spawn(
        nullptr,
        [&]() -> Task<void> {
          const CallContext context;
          const SandboxTarget box{"box", ""};
          FileWrite write{.path = "/f",
                          .create_parents = true,
                          .atomic = false,
                          .size = static_cast<int64_t>(kPieces * kPieceBytes)};
          auto writer = co_await files_.Write(context, box, std::move(write));
          absl::Status status = writer.status();
          for (int i = 0; i < kPieces && status.ok(); ++i) {
            const std::string piece = Piece(i);
            for (size_t at = 0; at < kPieceBytes && status.ok(); at += kChunkBytes) {
              status = co_await (*writer)->Send(std::string_view(piece).substr(at, kChunkBytes));
            }
          }
          if (status.ok()) {
            written = co_await (*writer)->Finish();
          } else {
            written = status;
          }
        },
        [&] { End(ended); });
  });
  LetTimePass();
  ended.Await();
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(written->size, static_cast<int64_t>(kPieces * kPieceBytes));
  EXPECT_EQ(written->sha256, WholeDigest());
  if (GetParam()) return;  // in chunks, which is another test's matter
  const size_t begin = body_.find("piece100");
  ASSERT_NE(begin, std::string::npos);
  Sha256 arrived;
  arrived.Update(std::string_view(body_).substr(begin, kPieces * kPieceBytes));
  EXPECT_EQ(arrived.FinishHex(), WholeDigest());
}

}  // namespace
}  // namespace bridge
