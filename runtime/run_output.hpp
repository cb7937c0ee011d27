// Where a run's report goes: text or JSON, to standard output or a file, and its trace.
#pragma once

#include <string>

#include "runtime/run_command.hpp"

namespace runtime {

struct OutputOptions {
  bool json = false;
  std::string out, trace;  // files; empty: standard output, none
};

// Throws ConfigError when a file cannot be written.
void write_report(const RunResult& result, const costmodel::Scenario& scenario,
                  const OutputOptions& options);

// What a run that ended early has seen, and on standard error how far it came; for threads that
// nobody catches anything from.
void write_early_end(const RunResult& result, const RunRequest& request,
                     const OutputOptions& options) noexcept;

}  // namespace runtime
