// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/exec_output.h"

#include <utility>

#include "frontends/epp/message.h"

namespace bridge::epp {

namespace v1 = ::sandbox::bridge::v1;

ExecOutput::ExecOutput(Output& output, std::string process_id)
    : output_(output), process_id_(std::move(process_id)) {}

void ExecOutput::Add(const v1::ExecEvent::OutputBatch& batch) {
  std::string joined;
  bool is_stderr = false;
  for (const v1::ExecEvent::Output& part : batch.outputs()) {
    const bool part_is_stderr = part.stream() == v1::OUTPUT_STREAM_STDERR;
    if (part_is_stderr != is_stderr) {
      Send(is_stderr, std::exchange(joined, {}));
      is_stderr = part_is_stderr;
    }
    joined.append(part.data());
  }
  Send(is_stderr, joined);
}

void ExecOutput::AddNote(std::string_view text) {
  std::string line = at_line_start_ ? "" : "\n";
  line.append(text).append("\n");
  Send(/*is_stderr=*/true, line);
}

void ExecOutput::Finish() {
  Notify(false, stdout_.Finish());
  Notify(true, stderr_.Finish());
}

void ExecOutput::Send(bool is_stderr, std::string_view bytes) {
  if (is_stderr && !bytes.empty()) at_line_start_ = bytes.back() == '\n';
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kMaxChunkBytes))) {
    Notify(is_stderr, (is_stderr ? stderr_ : stdout_).Feed(bytes.substr(0, kMaxChunkBytes)));
  }
}

void ExecOutput::Notify(bool is_stderr, const std::string& text) {
  if (text.empty()) return;
  output_.Write(RenderNotification(
      "exec.output",
      {{"process_id", process_id_}, {"stream", is_stderr ? "stderr" : "stdout"}, {"data", text}}));
}

}  // namespace bridge::epp
