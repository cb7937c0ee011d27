// Writes a run's report, as text or JSON, to standard output or a file, and its trace.
#pragma once

#include <functional>
#include <string>

#include "runtime/run/run_command.hpp"

namespace runtime {

struct OutputOptions {
  bool json = false;
  std::string out, trace;  // files; empty out: standard output; empty trace: none
};

// Throws ConfigError when a file cannot be written.
void write_report(const RunResult& result, const costmodel::Scenario& scenario,
                  const OutputOptions& options);

// The same for a run that ended early; also prints on standard error how far it got.
void write_early_end(const RunResult& result, const RunRequest& request,
                     const OutputOptions& options);

// For RunRequest::progress: reports each iteration on standard error, overwriting one line or, with
// `lines`, on a line each.
std::function<void(int, costmodel::Seconds)> progress(int iterations, bool lines);

}  // namespace runtime
