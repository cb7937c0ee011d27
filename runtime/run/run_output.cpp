#include "runtime/run/run_output.hpp"

#include <fmt/format.h>

#include "costmodel/base/console.hpp"
#include "costmodel/base/json_text.hpp"
#include "costmodel/base/output_file.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/cli/terminal.hpp"
#include "costmodel/schedule/chrome_trace.hpp"
#include "runtime/run/json_run.hpp"
#include "runtime/run/run_report.hpp"

namespace runtime {

using namespace costmodel;

namespace {

std::string trace_of(const RunSummary& measured) {
  return to_chrome_trace(measured.timeline, {measured.iteration, measured.bubble_fraction});
}

}  // namespace

void write_report(const RunResult& result, const Scenario& scenario, const OutputOptions& options) {
  if (!options.trace.empty()) {
    write_file(options.trace, trace_of(result.measured));
    const std::string left_out = left_out_of_trace(result.measured.timeline);
    if (!left_out.empty()) print_message("shardplan run: " + left_out);
  }
  const std::string text =
      options.json ? versioned_json(run_json(result)) : run_report(result, scenario);
  if (!options.out.empty()) return write_file(options.out, text);
  options.json ? write_standard_output(text) : print_report(text);
}

void write_early_end(const RunResult& result, const RunRequest& request,
                     const OutputOptions& options) {
  if (result.iterations > 0) write_report(result, request.scenario, options);
  print_message(fmt::format("shardplan run: {} of {} iterations were whole{}", result.iterations,
                            request.iterations, result.iterations > 0 ? " and are reported" : ""));
}

// On one line that is overwritten, or on a line each.
std::function<void(int, Seconds)> progress(int iterations, bool lines) {
  return [lines, iterations](int iteration, Seconds time) {
    const std::string line =
        fmt::format("iteration {} of {}: {}", iteration + 1, iterations, format_seconds(time));
    if (!lines) print_progress(line);
    if (lines) print_message(line);
    if (!lines && iteration + 1 == iterations) print_message("");
  };
}

}  // namespace runtime
