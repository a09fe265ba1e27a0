// SPDX-License-Identifier: Apache-2.0
//
// epp/exec_output.h — what a command prints, as exec.output notifications. Loop thread only.
#pragma once

#include <string>
#include <string_view>

#include "frontends/epp/output.h"
#include "frontends/epp/output_text.h"
#include "sandbox/bridge/v1/exec.pb.h"

namespace bridge::epp {

class ExecOutput {
 public:
  // A notification holds at most this much of a stream: 1.5 MiB when every byte needs an escape.
  static constexpr size_t kMaxChunkBytes = 256 * 1024;

  // `output` must outlive this.
  ExecOutput(Output& output, std::string process_id);

  // Neighbours of the same stream go out as one.
  void Add(const sandbox::bridge::v1::ExecEvent::OutputBatch& batch);
  // A line of the provider's own on stderr.
  void AddNote(std::string_view text);
  // What was held back as the beginning of a character. Before exec.exit.
  void Finish();

 private:
  void Send(bool is_stderr, std::string_view bytes);
  void Notify(bool is_stderr, const std::string& text);

  Output& output_;
  const std::string process_id_;
  OutputText stdout_;
  OutputText stderr_;
  bool at_line_start_ = true;  // of stderr
};

}  // namespace bridge::epp
