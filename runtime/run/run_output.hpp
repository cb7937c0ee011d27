// Where a run's report goes: text or JSON, to standard output or a file, and its trace.
#pragma once

#include <functional>
#include <string>

#include "runtime/run/run_command.hpp"

namespace runtime {

struct OutputOptions {
  bool json = false;
  std::string out, trace;  // files; empty: standard output, none
};

// Throws ConfigError when a file cannot be written.
void write_report(const RunResult& result, const costmodel::Scenario& scenario,
                  const OutputOptions& options);

// The same of a run that ended early, and on standard error how far it came.
void write_early_end(const RunResult& result, const RunRequest& request,
                     const OutputOptions& options);

// For RunRequest::progress: each iteration on standard error, on a line that is written over or,
// with `lines`, on one of its own.
std::function<void(int, costmodel::Seconds)> progress(int iterations, bool lines);

}  // namespace runtime
