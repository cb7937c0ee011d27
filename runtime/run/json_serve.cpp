#include "runtime/run/json_serve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "costmodel/base/json_text.hpp"
#include "costmodel/estimate/json_estimate.hpp"
#include "runtime/run/serve_report.hpp"

namespace runtime {

using namespace costmodel;

using Json = nlohmann::ordered_json;

namespace {

Json time_json(const ServeResult& r, const ServeTimes& times) {
  return {{"token_s", r.job.batch.output > 1 ? Json(times.token.value) : Json()},
          {"first_token_s", times.first_token.value}};
}

Json side_json(const ServeResult& r, const ServeTimes& times,
               const std::vector<StageCounts>& counts) {
  Json stages = Json::array();
  std::vector<Traffic> traffic;
  Traffic most;
  for (const StageCounts& stage : counts) {
    stages.push_back({{"weights_bytes", stage.weights}, {"kv_cache_bytes", stage.cache}});
    traffic.push_back(stage.traffic);
    if (stage.traffic.total() > most.total()) most = stage.traffic;
  }
  return {{"time", time_json(r, times)},
          {"memory", {{"stages", stages}}},
          {"communication", communication_json(most, traffic)}};
}

Json answers_json(const ServeResult& r) {
  Json answers = Json::array();
  for (auto at = r.tokens.begin(); at != r.tokens.end(); at += r.job.batch.output)
    answers.push_back(std::vector<std::int64_t>(at, at + r.job.batch.output));
  return answers;
}

}  // namespace

std::string serve_json(const ServeResult& r) {
  const auto& sizes = r.job.sizes;
  Json errors = Json::object();
  for (const Compared& row : compare(r))
    errors[row.key] = row.error_pct ? Json(*row.error_pct) : Json();
  Json measured = side_json(r, r.measured, r.counted);
  for (std::size_t p = 0; p < r.activations.size(); ++p)
    measured["memory"]["stages"][p]["activations_bytes"] = r.activations[p];
  Json json{{"backend", r.backend},
            {"workload", "inference"},
            {"plan", {{"tp", sizes.tp}, {"pp", sizes.pp}, {"dp", sizes.dp}}},
            {"batch",
             {{"requests", r.job.batch.requests * sizes.dp},
              {"input_tokens", r.job.batch.input},
              {"output_tokens", r.job.batch.output},
              {"block_size", r.job.block_size}}},
            {"iterations", r.iterations},
            {"measured", measured},
            {"predicted", side_json(r, r.predicted, r.ledger)},
            {"error_pct", errors},
            {"answers", answers_json(r)},
            {"answers_checksum", fmt::format("{:016x}", checksum(r.tokens))},
            {"notes", r.notes}};
  if (r.at_pace) {
    Json paced = Json::object(), missed = Json::object();
    for (const Compared& row : compare(r)) {
      if (!row.at_pace) continue;
      paced[row.key] = *row.at_pace;
      missed[row.key] = row.at_pace_error_pct ? Json(*row.at_pace_error_pct) : Json();
    }
    json["at_pace"] = {{"pace", r.pace}, {"predicted", {{"time", paced}}}, {"error_pct", missed}};
  }
  return json_text(json);
}

}  // namespace runtime
