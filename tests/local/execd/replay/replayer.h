// SPDX-License-Identifier: Apache-2.0
//
// Plays recorded requests against a running execd, in their order, with what they need before and
// beside them.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/local/execd/replay/compare.h"
#include "tests/local/execd/replay/raw_client.h"
#include "tests/local/execd/replay/recording.h"

namespace bridge::local::execd {

struct ReplayOptions {
  std::string file;  // of recordings
  int port = 0;
  http::Headers extra_headers;
  // Streams of these are read to their end, all others only to their last event, to save a second
  // each.
  std::set<std::string> read_to_end;
  std::set<std::string> only;  // names; empty: all
  std::set<std::string> skip;
};

class Replayer {
 public:
  explicit Replayer(const ReplayOptions& options);
  ~Replayer();

  // Differences by name; names without any are there too, with an empty list.
  std::map<std::string, Differences> Run();

 private:
  struct Live;  // a request in flight

  void Prepare(const Recording& recording);
  Differences Play(const Recording& recording);
  Differences PlayAnswer(const Recording& recording);
  Differences PlaySocket(const Recording& recording);
  Differences PlayKeepAlive(const Recording& recording);
  Differences PlayRace();
  void StartLive(const Recording& recording);
  void RunShell(const std::string& command);
  std::string Fill(const Recording& recording, const std::string& text);
  std::string Request(const Recording& recording);
  void Learn(const std::string& name, const RawAnswer& answer);
  void LearnId(const std::string& name, const std::string& id);
  const Recording* Find(const std::string& name) const;

  const ReplayOptions options_;
  const std::vector<Recording> recordings_;
  std::set<std::string> shells_done_;
  std::map<std::string, std::unique_ptr<Live>> live_;
  std::vector<std::thread> helpers_;

  std::mutex mu_;
  std::map<std::string, std::string> ids_;  // by recording: what later ones call its id
  std::string last_modified_;
  std::unique_ptr<RawClient> kept_;  // the connection of a keep-alive pair
};

}  // namespace bridge::local::execd
