#include "runtime/run/serve_report.hpp"

#include <fmt/format.h>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "runtime/run/run_report.hpp"

namespace runtime {

using namespace costmodel;

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
