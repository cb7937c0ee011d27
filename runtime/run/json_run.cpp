#include "runtime/run/json_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "costmodel/base/json_text.hpp"
#include "costmodel/estimate/json_estimate.hpp"
#include "runtime/run/comparison.hpp"
#include "runtime/run/run_report.hpp"

namespace runtime {

using namespace costmodel;

using Json = nlohmann::ordered_json;

namespace {

Json stages_json(const std::vector<double>& forward, const std::vector<double>& backward) {
  Json stages = Json::array();
  for (std::size_t r = 0; r < forward.size(); ++r)
    stages.push_back({{"forward_s", forward[r]}, {"backward_s", backward[r]}});
  return stages;
}

Json measured_time(const RunResult& r) {
  const auto forward = by_rank(r.measured.stage_forward, r.plan);
  const auto backward = by_rank(r.measured.stage_backward, r.plan);
  return {{"iteration_s", r.measured.iteration.value},
          {"forward_s", *std::ranges::max_element(forward)},
          {"backward_s", *std::ranges::max_element(backward)},
          {"stages", stages_json(forward, backward)}};
}

Json measured_memory(const RunResult& r) {
  Json stages = Json::array();
  for (std::size_t p = 0; p < r.measured.memory.size(); ++p) {
    Json stage;
    for (std::size_t k = 0; k < memory_kind_names.size(); ++k)
      stage[fmt::format("{}_bytes", memory_kind_names[k])] = r.measured.memory[p][k];
    stage["total_bytes"] = r.measured.peak[p];
    stages.push_back(stage);
  }
  return {{"peak_bytes", *std::ranges::max_element(r.measured.peak)}, {"stages", stages}};
}

Json predicted_json(const RunResult& r) {
  const auto& e = r.predicted;
  return {{"time", time_json(e)},
          {"bubble_fraction", e.bubble_fraction},
          {"throughput", throughput_json(e, r.scenario.cluster)},
          {"memory", memory_json(e)},
          {"communication", communication_json(e.traffic, e.rank_traffic)}};
}

Json measured_json(const RunResult& r) {
  Json json{{"time", measured_time(r)}, {"bubble_fraction", r.measured.bubble_fraction}};
  json["throughput"] = throughput_json(at_measured_time(r), r.scenario.cluster);
  json["memory"] = r.computed ? measured_memory(r) : Json();
  json["communication"] =
      r.computed ? communication_json(most_traffic(r.measured), r.measured.traffic) : Json();
  return json;
}

Json errors_json(const RunResult& r) {
  Json errors = Json::object();
  for (const Compared& row : compare(r))
    errors[row.key] = row.error_pct ? Json(*row.error_pct) : Json();
  return errors;
}

// The prediction at the measured pace of the machine.
Json at_pace_json(const RunResult& r) {
  Json errors = Json::object();
  for (const Compared& row : compare(r)) {
    if (row.at_pace)
      errors[row.key] = row.at_pace_error_pct ? Json(*row.at_pace_error_pct) : Json();
  }
  return {{"pace", r.measured.pace},
          {"predicted",
           {{"time", time_json(*r.at_pace)}, {"bubble_fraction", r.at_pace->bubble_fraction}}},
          {"error_pct", errors}};
}

}  // namespace

std::string run_json(const RunResult& r) {
  Json json{{"backend", r.backend},
            {"plan", plan_json(r.predicted)},
            {"iterations", r.iterations},
            {"loss", r.measured.loss},
            {"loss_checksum", fmt::format("{:016x}", checksum(r.measured.loss))},
            {"measured", measured_json(r)},
            {"predicted", predicted_json(r)},
            {"error_pct", errors_json(r)},
            {"notes", r.notes},
            {"interrupted", r.interrupted}};
  if (r.at_pace) json["at_pace"] = at_pace_json(r);
  if (r.interrupted) json["cause"] = r.cause;
  return json_text(json);
}

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
