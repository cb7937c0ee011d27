#include "runtime/run/run_report.hpp"

#include <fmt/format.h>

#include <cmath>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/plan/plan_text.hpp"

namespace runtime {

using namespace costmodel;

namespace {

std::string value_text(Unit unit, double value) {
  if (!std::isfinite(value)) return "-";
  switch (unit) {
    case Unit::seconds: return format_seconds(Seconds(value));
    case Unit::bytes: return format_bytes(costmodel::Bytes(value));
    case Unit::fraction: return fmt::format("{:.1f} %", 100 * value);
  }
  return {};
}

std::string error_text(Unit unit, const std::optional<double>& error) {
  if (!error) return "-";
  const double tenths = std::round(10 * *error) / 10 + 0.0;  // no negative zero
  return fmt::format("{:+.1f} {}", tenths, unit == Unit::fraction ? "points" : "%");
}

std::string error_text(const Compared& row) {
  if (row.unit == Unit::bytes && row.predicted == row.measured) return "exact";
  return error_text(row.unit, row.error_pct);
}

std::string row_text(const Compared& row) {
  std::string text =
      fmt::format("{:<26}{:>14}{:>14}{:>16}", row.title, value_text(row.unit, row.predicted),
                  value_text(row.unit, row.measured), error_text(row));
  if (row.at_pace) {
    text += fmt::format("{:>14}{:>16}", value_text(row.unit, *row.at_pace),
                        error_text(row.unit, row.at_pace_error_pct));
  }
  return text + "\n";
}

bool is_nothing(const Compared& row) {
  return row.unit == Unit::bytes && row.predicted == 0 && row.measured == 0;
}

std::string losses_text(const std::vector<double>& losses) {
  if (losses.empty()) return {};
  return fmt::format("\nloss {:.6f} -> {:.6f} over {} iterations, checksum {:016x}\n",
                     losses.front(), losses.back(), losses.size(), checksum(losses));
}

}  // namespace

std::string comparison_text(const std::vector<Compared>& rows, bool at_pace) {
  std::string text = fmt::format("{:<26}{:>14}{:>14}{:>16}", "", "predicted", "measured", "error");
  text += at_pace ? fmt::format("{:>14}{:>16}\n", "at its pace", "error") : "\n";
  for (const Compared& row : rows)
    if (!is_nothing(row)) text += row_text(row);
  return text;
}

std::string run_report(const RunResult& r, const Scenario& s) {
  const std::string iterations =
      r.iterations == 1 ? "1 iteration, a cold one"
                        : fmt::format("{} iterations, the first one to warm up", r.iterations);
  const std::string ranks = r.computed ? fmt::format("{} ranks, {}", r.plan.devices(), iterations)
                                       : fmt::format("{} pipeline ranks", r.plan.pp);
  std::string text = fmt::format(
      "{} on {}, batch {} of {} tokens\n{}\nbackend {}: {}\n\n",
      printable(s.model.name.empty() ? s.model_text : s.model.name), printable(s.cluster_text),
      s.training.global_batch, s.training.sequence, printable(to_string(r.plan)), r.backend, ranks);
  if (r.interrupted) text += fmt::format("ended early: {}\n\n", printable(r.cause));
  text += comparison_text(compare(r), r.at_pace.has_value());
  text += losses_text(r.measured.loss);
  for (const auto& note : r.notes) text += fmt::format("note: {}\n", printable(note));
  return text;
}

std::uint64_t checksum(const std::vector<std::int64_t>& tokens) {
  std::uint64_t hash = 14695981039346656037U;
  for (const std::int64_t token : tokens)
    hash = (hash ^ static_cast<std::uint64_t>(token)) * 1099511628211U;
  return hash;
}

std::string serve_report(const ServeResult& r) {
  const auto& s = r.scenario;
  const auto& batch = r.job.batch;
  const auto& sizes = r.job.sizes;
  const std::int64_t requests = batch.requests * sizes.dp;
  const auto several = [](std::int64_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  std::string text = fmt::format("{} on {}, {} of {} + {} tokens\n",
                                 printable(s.model.name.empty() ? s.model_text : s.model.name),
                                 printable(s.cluster_text), several(requests, "request"),
                                 batch.input, batch.output);
  text += fmt::format("t {} · p {} · d {}, keys and values in blocks of {}\n", sizes.tp, sizes.pp,
                      sizes.dp, several(r.job.block_size, "token"));
  text += fmt::format("backend {}: {}, {}\n\n", r.backend, several(sizes.devices(), "rank"),
                      r.iterations == 1
                          ? "1 batch, a cold one"
                          : fmt::format("{} batches, the first one to warm up", r.iterations));
  text += comparison_text(compare(r), r.at_pace.has_value());
  const double tokens = static_cast<double>(requests * batch.output);
  const Seconds all =
      r.measured.first_token + r.measured.token * static_cast<double>(batch.output - 1);
  text +=
      fmt::format("\n{} of {}, {:.0f} tokens/s, checksum {:016x}\n", several(requests, "answer"),
                  several(batch.output, "token"), tokens / all.value, checksum(r.tokens));
  for (const auto& note : r.notes) text += fmt::format("note: {}\n", printable(note));
  return text;
}

}  // namespace runtime
