#include "planner/traces/trace_file.hpp"

#include <string_view>

#include "costmodel/base/input_file.hpp"
#include "costmodel/base/path.hpp"
#include "planner/traces/chrome_trace_reader.hpp"
#include "planner/traces/nsight_reader.hpp"
#include "planner/traces/unpacked_file.hpp"

namespace planner {

namespace {

constexpr std::string_view sqlite_bytes = "SQLite format 3";

std::string first_bytes(const std::string& file) {
  return std::string(costmodel::InputPieces(file).next().substr(0, 4096));
}

}  // namespace

Trace read_trace(const std::string& file) {
  Trace trace = first_bytes(file).starts_with(sqlite_bytes)
                    ? read_nsight(file)
                    : read_chrome_trace(unpacked_file(file), file);
  nest(trace);
  find_iterations(trace);
  return trace;
}

bool is_trace_file(const std::string& file) {
  if (!costmodel::is_regular_file(file)) return false;
  const std::string bytes = first_bytes(file);
  if (bytes.starts_with(sqlite_bytes) || bytes.starts_with("\x1f\x8b")) return true;
  const auto begin = bytes.find_first_not_of(" \t\r\n");
  return begin != std::string::npos && bytes[begin] == '{' &&
         (bytes.find("\"traceEvents\"") != std::string::npos ||
          bytes.find("\"schemaVersion\"") != std::string::npos);
}

}  // namespace planner
