// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/process_script.h — the bash text that runs a long-lived process on a stock daemon's
// /pty, and the scripts that look after it. The wrapper runs the program, tells its end by a marker
// in the output (process_marker.h) and then waits: so the terminal stays open until every byte was
// read, and the daemon's habit of running an exited session again is never triggered. Pure
// functions.
//
// Its folder holds: "id" the process id, "p" the program's pid and its birth (the kernel's start
// time) while it runs, "s" the last ones once it was started for the first time, "c"
// a pipe on which the line "rN" makes it run once more behind its first N marks, "m" what the shell
// says of a death by signal, "n" how many markers were printed, and without a terminal "i" the
// program's input.
#pragma once

#include <string>
#include <string_view>

#include "bridge/opensandbox/process_types.h"
#include "bridge/opensandbox/user_directory.h"

namespace bridge {

// "/tmp/.sandbox-bridge-p-NONCE"
std::string ProcessFolder(std::string_view scratch, std::string_view nonce);

// `user`: resolved; empty when the spec names none.
std::string ProcessWrapper(const ProcessSpec& spec, const StockUser& user, std::string_view folder,
                           std::string_view nonce);

// Stores the process's id in its folder, for lists.
std::string RegisterScript(std::string_view folder, std::string_view process_id);
// Makes the wrapper run its program once more behind so many marks, and ends when it has begun to:
// however many ask for the same run, at once or late, there is one. Fails when nothing answers.
std::string RestartScript(std::string_view folder, int marks);
// Waits until the program was started for the first time (at most about a second) and prints its
// pid.
std::string AwaitStartScript(std::string_view folder);
// Prints a line "ID PID STATE STARTED MARKS KIND VALUE": the program's pid, 0 unless it runs, and
// the kernel's letter for its state; whether it was ever started, 0 or 1; how many markers were
// printed and what the last one said (process_marker.h). "-" for a word that there is not.
std::string RecordScript(std::string_view folder);
// To the program, or to every member of its session's group but the wrapper. Exit 3: nobody there.
std::string SignalProcessScript(std::string_view folder, int signal, bool group);
// To any pid, or to the group of that process; when no process has the pid, to the group of that
// number. Exit 3: no such process, 13: not permitted, or it is the daemon (the script's parent).
std::string SignalPidScript(int64_t pid, int signal, bool group);
// Kills the program of a terminal and all of its session, jobs in groups of their own too, but the
// wrapper. The program is stopped first, so that it starts nothing more meanwhile.
std::string EndSessionScript(std::string_view folder);
// Such a line for each process of the bridge.
std::string ListOwnScript(std::string_view scratch);
// All processes: a line "=PID PPID PGID STATE UID" each, then lines with its arguments in hex,
// every one of them ended by a 00: nothing that is in them can be taken for a line.
std::string ListAllScript();

}  // namespace bridge
