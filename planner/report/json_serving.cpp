#include "planner/report/json_serving.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "costmodel/base/json_text.hpp"
#include "planner/diagnosis/serving_remedies.hpp"
#include "planner/diagnosis/tensor_ladder.hpp"
#include "planner/report/serving_interval.hpp"
#include "planner/report/serving_notes.hpp"
#include "planner/report/serving_report.hpp"

namespace planner {

using Json = nlohmann::ordered_json;
using namespace costmodel;

namespace {

Json positive_or_null(double value) { return value > 0 ? Json(value) : Json(); }

// Null: unknown, or an overloaded plan's, whose latencies have no end.
Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json latency_json(const Latency& latency, const std::array<double, 2>& interval) {
  if (!std::isfinite(latency.mean)) {
    return {{"mean_s", Json()}, {"p95_s", Json()}, {"interval_s", Json()}};
  }
  return {{"mean_s", latency.mean},
          {"p95_s", latency.p95},
          {"interval_s", {latency.mean * interval[0], latency.mean * interval[1]}}};
}

Json sizes_json(const ServingSizes& sizes, std::int64_t devices) {
  return {
      {"tp", sizes.tp}, {"pp", sizes.pp}, {"ep", sizes.ep}, {"dp", sizes.dp}, {"devices", devices}};
}

Json memory_of(const ServingEstimate& e) {
  const auto& m = e.memory;
  return {{"device_bytes", m.device.value},   {"usable_bytes", m.usable.value},
          {"weights_bytes", m.weights.value}, {"activations_bytes", m.activations.value},
          {"engine_bytes", m.context.value},  {"cache_bytes", std::max(0.0, m.cache.value)},
          {"token_bytes", m.token.value},     {"cache_tokens", m.tokens},
          {"cache_requests", e.held},         {"longest_tokens", positive_or_null(m.longest)}};
}

Json token_json(const ServingEstimate& e) {
  const auto& t = e.token;
  return {{"weights_s", t.weights.value},
          {"cache_s", t.cache.value},
          {"products_s", t.products.value},
          {"kernels_s", t.streams.value},
          {"collectives_s", t.collectives.value},
          {"transfers_s", t.transfers.value},
          {"host_s", t.host.value},
          {"others_prompts_s", e.stalled.value}};
}

Json bounds_json(const ServingScenario& s, const ServingEstimate& e) {
  Json all = Json::array();
  for (const AskedBound& bound : asked_bounds(s, e)) {
    all.push_back({{"key", std::string("serving.") + std::string(bound.key)},
                   {"limit", bound.limit},
                   {"predicted", finite_or_null(bound.reported)},
                   {"kept", bound.kept}});
  }
  return all;
}

Json estimate_of(const ServingScenario& s, const ServingEstimate& e, const ServingFit& fit) {
  Json json{{"plan", sizes_json(e.sizes, e.devices)},
            {"plan_text", plan_text(s, e.sizes)},
            {"weights", to_string(e.weights)},
            {"fits", e.fits},
            {"memory", memory_of(e)}};
  if (!e.fits) return json;
  json["output_tokens_per_s"] = e.output_per_s;
  const auto rates = output_interval(s, e, fit.intervals[0]);
  json["output_tokens_per_s_interval"] = {rates[0], rates[1]};
  json["output_tokens_per_s_per_device"] = e.per_device();
  json["total_tokens_per_s"] = e.total_per_s;
  json["requests_per_s"] = e.requests_per_s;
  json["capacity_requests_per_s"] = e.capacity;
  json["saturated"] = e.saturated;
  json["simulated_requests"] = e.simulated > 0 ? Json(e.simulated) : Json();
  json["bounds"] = bounds_json(s, e);
  json["first_token"] = latency_json(e.ttft, fit.intervals[2]);
  json["next_token"] = latency_json(e.tpot, fit.intervals[1]);
  json["answer"] = latency_json(e.e2e, fit.intervals[3]);
  json["run"] = nullptr;  // of so many requests, where more arrive than are answered
  if (e.run) {
    json["run"] = {{"output_tokens_per_s", e.run->output_per_s},
                   {"first_token_s", e.run->ttft.mean},
                   {"next_token_s", e.run->tpot.mean},
                   {"answer_s", e.run->e2e.mean}};
  }
  json["running"] = e.running;
  json["token"] = token_json(e);
  json["turning_batch"] = positive_or_null(e.turning);
  if (e.transfer.value > 0) {
    json["transfer"] = {{"seconds", e.transfer.value}, {"bytes_per_prompt", e.sent.value}};
  }
  json["usd_per_hour"] = positive_or_null(e.usd_per_hour);
  json["usd_per_million_output_tokens"] = positive_or_null(e.usd_per_million_output);
  json["notes"] = serving_notes(s, e);
  return json;
}

Json pools_json(const std::optional<Disaggregation>& apart) {
  if (!apart) return {};
  const auto& [prefill, decode] = *apart;
  return {{"prefill", sizes_json(prefill, prefill.devices())},
          {"decode", sizes_json(decode, decode.devices())}};
}

Json candidate_json(const ServingScenario& s, const ServingCandidate& c, const ServingFit& fit) {
  Json json = estimate_of(with_choice(s, c.choice), c.estimate, fit);
  json["disaggregation"] = pools_json(c.choice.apart);
  json["max_num_seqs"] = c.choice.max_num_seqs;
  json["max_num_batched_tokens"] = c.choice.max_num_batched_tokens;
  return json;
}

}  // namespace

std::string serving_json(const ServingScenario& s, const ServingEstimate& e,
                         const ServingFit& fit) {
  Json json{{"scenario", s.name}, {"workload", "inference"}};
  json.update(estimate_of(s, e, fit));
  if (s.plan.disaggregation) json["disaggregation"] = pools_json(s.plan.disaggregation);
  if (e.fits && !s.plan.disaggregation) {
    Json curve = Json::array();
    for (const auto& p : load_curve(s, e.sizes)) {
      curve.push_back({{"in_flight", p.in_flight},
                       {"requests_per_s", p.requests_per_s},
                       {"output_tokens_per_s", p.output_per_s},
                       {"first_token_s", p.ttft.value},
                       {"next_token_s", p.tpot.value}});
    }
    json["load_curve"] = curve;
  }
  if (e.fits) json["reasons"] = serving_reasons(s, e);
  json["basis"] = fit.basis;
  return json_text(json);
}

std::string serving_search_json(const ServingScenario& s, const ServingSearch& found,
                                const ServingFit& fit) {
  const auto plans_json = [&](const std::vector<ServingCandidate>& candidates) {
    Json all = Json::array();
    for (const auto& c : candidates) all.push_back(candidate_json(s, c, fit));
    return all;
  };
  Json split;
  if (found.apart) {
    split = pools_json(found.apart->choice.apart);
    split["estimate"] =
        estimate_of(with_choice(s, found.apart->choice), found.apart->estimate, fit);
  }
  return json_text(Json{{"scenario", s.name},
                        {"workload", "inference"},
                        {"plans", plans_json(found.best)},
                        {"nearest", plans_json(found.nearest)},
                        {"front", plans_json(found.front)},
                        {"split", split},
                        {"remedies", serving_remedies(s, found)},
                        {"search",
                         {{"plans", found.choices},
                          {"plans_apart", found.apart_choices},
                          {"fit", found.fit},
                          {"keep_bound", found.keep},
                          {"simulated", found.simulated},
                          {"missed_when_simulated", found.broken},
                          {"proved", !found.best.empty()}}},
                        {"basis", fit.basis}});
}

}  // namespace planner
