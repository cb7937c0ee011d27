#include "planner/search/serving_bounds.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "costmodel/base/unit_text.hpp"

namespace planner {

using namespace costmodel;

namespace {

constexpr std::string_view latencies = "latency_bound.";

void add_at_most(std::string_view name, std::string_view key, double limit, double reported,
                 std::vector<AskedBound>& all) {
  if (limit > 0) all.push_back({name, key, limit, reported, reported <= limit, reported / limit});
}

}  // namespace

std::vector<AskedBound> asked_bounds(const ServingScenario& s, const ServingEstimate& e) {
  const auto& bound = s.serving.bound;
  const auto& goal = s.serving.goal;
  std::vector<AskedBound> all;
  add_at_most("first token", "latency_bound.ttft_s", bound.ttft.value, e.ttft.mean, all);
  add_at_most("next tokens", "latency_bound.tpot_s", bound.tpot.value, e.tpot.mean, all);
  add_at_most("answer", "latency_bound.e2e_s", bound.e2e.value, e.e2e.mean, all);
  for (AskedBound& latency : all) latency.kept = latency.kept && !e.saturated;
  if (goal.output_per_s > 0) {
    all.push_back({"tokens/s", "throughput_target", goal.output_per_s, e.output_per_s,
                   e.output_per_s >= goal.output_per_s,
                   goal.output_per_s / std::max(1e-12, e.output_per_s)});
  }
  add_at_most("dollars an hour", "budget.usd_per_hour", goal.usd_per_hour, e.usd_per_hour, all);
  add_at_most("dollars a million tokens", "budget.usd_per_million_tokens", goal.usd_per_million,
              e.usd_per_million_output, all);
  return all;
}

std::string to_string(const AskedBound& b) {
  const bool time = b.key.starts_with(latencies);
  const auto text = [&](double x) {
    if (time) return format_seconds(Seconds(x));
    return x >= 1000 ? format_integer(static_cast<long long>(x)) : fmt::format("{:.4g}", x);
  };
  const char* side = b.key == "throughput_target" ? "at least" : "at most";
  const std::string limit = time ? fmt::format("{} {}", b.name, text(b.limit))
                                 : fmt::format("{} {}", text(b.limit), b.name);
  const bool endless = !b.kept && b.excess <= 1;
  return fmt::format("{} {}: {} ({})", limit, side, b.kept ? "kept" : "missed",
                     endless ? "overloaded, so it grows without end" : text(b.reported));
}

double worst_excess(const ServingScenario& s, const ServingEstimate& e) {
  double worst = e.saturated ? s.serving.arrival_rate / e.capacity : 0;
  for (const AskedBound& bound : asked_bounds(s, e)) worst = std::max(worst, bound.excess);
  return worst;
}

}  // namespace planner
