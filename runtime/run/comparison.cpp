#include "runtime/run/comparison.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "costmodel/estimate/breakdown.hpp"
#include "costmodel/estimate/json_estimate.hpp"
#include "costmodel/machine/cluster_groups.hpp"

namespace runtime {

using namespace costmodel;

namespace {

std::optional<double> error_of(Unit unit, double predicted, double measured) {
  if (!std::isfinite(predicted) || !std::isfinite(measured)) return std::nullopt;
  if (unit == Unit::fraction) return 100 * (predicted - measured);
  if (measured == 0) return predicted == 0 ? std::optional(0.0) : std::nullopt;
  return 100 * (predicted - measured) / measured;
}

class Rows {
 public:
  void add(std::string key, std::string title, Unit unit, double predicted, double measured) {
    rows.push_back({std::move(key),
                    std::move(title),
                    unit,
                    predicted,
                    measured,
                    error_of(unit, predicted, measured),
                    {},
                    {}});
  }
  std::vector<Compared> rows;
};

void add_stages(const RunResult& r, const Estimate& e, Rows& rows) {
  for (const bool backward : {false, true}) {
    const auto said = by_rank(backward ? e.stage_backward : e.stage_forward, r.plan);
    const auto seen =
        by_rank(backward ? r.measured.stage_backward : r.measured.stage_forward, r.plan);
    const char* name = backward ? "backward" : "forward";
    for (std::size_t p = 0; p < said.size(); ++p) {
      rows.add(fmt::format("stages.{}.{}_s", p, name), fmt::format("stage {} {}", p, name),
               Unit::seconds, said[p], seen[p]);
    }
  }
}

Rows times_of(const RunResult& r, const Estimate& e) {
  Rows rows;
  rows.add("iteration_s", "iteration", Unit::seconds, e.iteration.value,
           r.measured.iteration.value);
  add_stages(r, e, rows);
  rows.add("bubble_fraction", "bubble", Unit::fraction, e.bubble_fraction,
           r.measured.bubble_fraction);
  return rows;
}

void add_memory(const RunResult& r, Rows& rows) {
  for (std::size_t p = 0; p < r.measured.memory.size(); ++p) {
    const auto& said = r.predicted.memory[p];
    const std::array predicted{said.weights, said.gradients, said.optimizer, said.activations,
                               said.buffers};
    for (std::size_t k = 0; k < predicted.size(); ++k) {
      rows.add(fmt::format("memory.{}.{}_bytes", p, memory_kind_names[k]),
               fmt::format("stage {} {}", p, memory_kind_names[k]), Unit::bytes, predicted[k].value,
               static_cast<double>(r.measured.memory[p][k]));
    }
  }
}

void add_traffic(const RunResult& r, Rows& rows) {
  const Traffic& said = r.predicted.traffic;
  const Traffic seen = most_traffic(r.measured);
  const auto add = [&](const char* key, const char* title, costmodel::Bytes a, costmodel::Bytes b) {
    if (a.value == 0 && b.value == 0) return;
    rows.add(fmt::format("communication.{}_bytes", key), fmt::format("{} a device", title),
             Unit::bytes, a.value, b.value);
  };
  add("all_reduce", "all-reduce", said.all_reduce, seen.all_reduce);
  add("all_gather", "all-gather", said.all_gather, seen.all_gather);
  add("reduce_scatter", "reduce-scatter", said.reduce_scatter, seen.reduce_scatter);
  add("send", "sent to stages", said.send, seen.send);
}

}  // namespace

Traffic most_traffic(const RunSummary& measured) {
  Traffic most;
  for (const auto& sent : measured.traffic)
    if (sent.total() > most.total()) most = sent;
  return most;
}

std::string not_predicted(const RunResult& r) {
  if (std::isfinite(r.predicted.iteration.value)) return "";
  const auto precision = r.scenario.training.precision;
  std::string why = "the model gives no finite time";
  for (const ClusterSpec& group : groups_of(r.scenario.cluster)) {
    if (group.device.peak_of(precision) == FlopsPerSecond(0))
      why = fmt::format("device {} has no {} rate", group.device.name, to_string(precision));
  }
  return "the iteration time is not predicted: " + why;
}

std::string limit_missed(const RunResult& r, double limit_pct) {
  if (std::string none = not_predicted(r); !none.empty())
    return none + fmt::format(", and so not within --fail-above {:g}", limit_pct);
  const auto error = compare(r).front().error_pct;
  if (error && std::abs(*error) <= limit_pct) return "";
  return fmt::format("the iteration time is predicted {} wrong, above --fail-above {:g}",
                     error ? fmt::format("{:.1f} %", std::abs(*error)) : "infinitely", limit_pct);
}

Estimate at_measured_time(const RunResult& r) {
  Estimate e = r.predicted;
  e.iteration = r.measured.iteration;
  set_throughput(r.scenario.cluster, r.scenario.training, e);
  return e;
}

std::vector<Compared> compare(const RunResult& r) {
  Rows rows = times_of(r, r.predicted);
  if (r.at_pace) {
    const Rows at_pace = times_of(r, *r.at_pace);
    for (std::size_t i = 0; i < rows.rows.size(); ++i) {
      rows.rows[i].at_pace = at_pace.rows[i].predicted;
      rows.rows[i].at_pace_error_pct = at_pace.rows[i].error_pct;
    }
  }
  if (!r.computed) return std::move(rows.rows);
  add_memory(r, rows);
  add_traffic(r, rows);
  return std::move(rows.rows);
}

}  // namespace runtime
