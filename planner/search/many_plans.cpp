#include "planner/search/many_plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <unordered_map>
#include <variant>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/parallel_for.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/scenario/plan_reader.hpp"

namespace planner {

using namespace costmodel;

namespace {

using P = PlanRequest;

// The keys of a plan that are numbers or switches, and no others.
struct NumberKey {
  const char* name;
  std::variant<std::optional<int> P::*, std::optional<std::int64_t> P::*, std::optional<bool> P::*>
      field;
};
constexpr std::array number_keys{NumberKey{"tp", &P::tp},
                                 NumberKey{"pp", &P::pp},
                                 NumberKey{"dp", &P::dp},
                                 NumberKey{"cp", &P::cp},
                                 NumberKey{"ep", &P::ep},
                                 NumberKey{"etp", &P::etp},
                                 NumberKey{"vpp", &P::vpp},
                                 NumberKey{"zero", &P::zero},
                                 NumberKey{"dp_replicate", &P::dp_replicate},
                                 NumberKey{"micro_batch", &P::micro_batch},
                                 NumberKey{"micro_batch_group", &P::micro_batch_group},
                                 NumberKey{"in_flight_limit", &P::in_flight_limit},
                                 NumberKey{"sequence_parallel", &P::sequence_parallel},
                                 NumberKey{"expert_overlap", &P::expert_overlap},
                                 NumberKey{"delayed_weight_gradient", &P::delayed_weight_gradient},
                                 NumberKey{"shared_expert_overlap", &P::shared_expert_overlap}};

constexpr std::array figures{
    PlanFigure{"iteration_s", [](const Estimate& e) { return e.iteration.value; }},
    PlanFigure{"tokens_per_s", [](const Estimate& e) { return e.tokens_per_s; }},
    PlanFigure{"mfu", [](const Estimate& e) { return e.mfu; }},
    PlanFigure{"hfu", [](const Estimate& e) { return e.hfu; }},
    PlanFigure{"bubble_fraction", [](const Estimate& e) { return e.bubble_fraction; }},
    PlanFigure{"peak_bytes", [](const Estimate& e) { return e.peak.value; }},
    PlanFigure{"capacity_bytes", [](const Estimate& e) { return e.capacity.value; }},
    PlanFigure{"fits", [](const Estimate& e) { return e.fits() ? 1.0 : 0.0; }},
    PlanFigure{"dp", [](const Estimate& e) { return static_cast<double>(e.plan.dp); }},
    PlanFigure{"micro_batches",
               [](const Estimate& e) { return static_cast<double>(e.micro_batches); }}};

const NumberKey& key_of(const std::string& name) {
  const auto* const found =
      std::ranges::find_if(number_keys, [&](const NumberKey& key) { return key.name == name; });
  if (found != number_keys.end()) return *found;
  std::vector<std::string> known;
  for (const NumberKey& key : number_keys) known.emplace_back(key.name);
  throw ConfigError({}, fmt::format("{} is no key of a plan that has numbers", quote(name)),
                    known_names(name, known));
}

// Why the value is none of the key's, by the reader of plans; "" where it is one.
std::string fault_of(const NumberKey& key, std::int64_t value) {
  const bool word =
      std::holds_alternative<std::optional<bool> P::*>(key.field) && (value == 0 || value == 1);
  Value map;
  map.kind = Value::Kind::map;
  map.set(key.name, scalar_value(!word ? std::to_string(value) : value == 1 ? "true" : "false"));
  try {
    read_plan(map);
    return "";
  } catch (const ConfigError& fault) {
    return fault.what();
  }
}

// Sets the key to one of its values.
void set(PlanRequest& plan, const NumberKey& key, std::int64_t value) {
  std::visit(
      [&](auto field) {
        using Number = typename std::remove_reference_t<decltype(plan.*field)>::value_type;
        plan.*field = static_cast<Number>(value);
      },
      key.field);
}

// Equal plans share a number, by the first that has it.
struct Distinct {
  std::vector<std::size_t> first;   // the plan that stands for each
  std::vector<std::size_t> number;  // by plan
};

struct RowHash {
  std::size_t operator()(const std::vector<std::int64_t>& row) const {
    std::size_t hash = row.size();
    for (const std::int64_t x : row)
      hash = (hash ^ static_cast<std::size_t>(x)) * 0x9e3779b97f4a7c15U + (hash >> 29);
    return hash;
  }
};

Distinct distinct_of(const std::vector<PlanColumn>& columns, std::size_t count) {
  Distinct all;
  all.number.reserve(count);
  std::unordered_map<std::vector<std::int64_t>, std::size_t, RowHash> seen;
  std::vector<std::int64_t> row(columns.size());
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t c = 0; c < columns.size(); ++c) row[c] = columns[c].values[i];
    const auto [at, fresh] = seen.emplace(row, all.first.size());
    if (fresh) all.first.push_back(i);
    all.number.push_back(at->second);
  }
  return all;
}

// Prices plans of a scenario on one thread.
class Pricer {
 public:
  Pricer(const Scenario& scenario, const std::vector<PlanColumn>& columns)
      : scenario_(scenario),
        written_(scenario.plan),
        columns_(columns),
        evaluator_(scenario.model, scenario.cluster, scenario.training) {
    for (const PlanColumn& column : columns) keys_.push_back(&key_of(column.key));
    faults_.resize(columns.size());
  }

  // The figures of plan i; empty, and why in `error`, where it breaks a rule.
  std::vector<double> price(std::size_t i, std::string& error) {
    try {
      scenario_.plan = written_;
      for (std::size_t c = 0; c < keys_.size(); ++c) {
        error = fault_in(c, columns_[c].values[i]);
        if (!error.empty()) return {};
        set(scenario_.plan, *keys_[c], columns_[c].values[i]);
      }
      const ParallelPlan plan = unchecked_plan(scenario_);
      if (!is_valid(plan, scenario_.model, scenario_.cluster, scenario_.training)) {
        error = why_invalid(plan);
        return {};
      }
      const Estimate estimate = evaluator_.estimate(plan);
      std::vector<double> row;
      for (const PlanFigure& figure : figures) row.push_back(figure.of(estimate));
      return row;
    } catch (const ConfigError& fault) {
      error = fault.what();
      return {};
    }
  }

 private:
  const std::string& fault_in(std::size_t column, std::int64_t value) {
    const auto found = faults_[column].find(value);
    if (found != faults_[column].end()) return found->second;
    return faults_[column].emplace(value, fault_of(*keys_[column], value)).first->second;
  }

  // Most plans of a grid break one of few rules: an exception and its message a rule, not a plan.
  const std::string& why_invalid(const ParallelPlan& plan) {
    const auto broken =
        violations(plan, scenario_.model, scenario_.cluster, scenario_.training).front();
    std::string& message =
        messages_[fmt::format("{}: {}; {}", broken.key, broken.reason, broken.remedy)];
    if (!message.empty()) return message;
    try {
      require_valid(plan, scenario_);
    } catch (const ConfigError& fault) {
      message = fault.what();
    }
    return message;
  }

  Scenario scenario_;
  PlanRequest written_;
  const std::vector<PlanColumn>& columns_;
  std::vector<const NumberKey*> keys_;
  Evaluator evaluator_;
  std::vector<std::unordered_map<std::int64_t, std::string>> faults_;  // by column and value
  std::unordered_map<std::string, std::string> messages_;
};

}  // namespace

std::span<const PlanFigure> plan_figures() { return figures; }

ManyPlans evaluate_many(const Scenario& scenario, const std::vector<PlanColumn>& columns,
                        int threads, const std::function<bool()>& stopped) {
  const std::size_t count = columns.empty() ? 0 : columns.front().values.size();
  for (const PlanColumn& column : columns) {
    key_of(column.key);
    if (column.values.size() == count) continue;
    throw ConfigError({},
                      fmt::format("{} has {} values, and {} has {}", column.key,
                                  column.values.size(), columns.front().key, count),
                      "give every key as many");
  }
  const Distinct plans = distinct_of(columns, count);
  std::vector<std::vector<double>> rows(plans.first.size());
  std::vector<std::string> why(plans.first.size());
  const std::size_t parts = std::min<std::size_t>(std::max(1, threads), rows.size());
  share_out(parts, threads, [&](std::size_t part) {
    Pricer pricer(scenario, columns);
    for (std::size_t k = part; k < rows.size(); k += parts) {
      if (stopped && stopped()) {
        why[k] = "interrupted";
      } else {
        rows[k] = pricer.price(plans.first[k], why[k]);
      }
    }
  });
  ManyPlans all{.figures = {}, .errors = std::vector<std::string>(count), .distinct = rows.size()};
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  all.figures.assign(figures.size(), std::vector<double>(count, none));
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t k = plans.number[i];
    for (std::size_t f = 0; f < rows[k].size(); ++f) all.figures[f][i] = rows[k][f];
    all.errors[i] = why[k];
  }
  return all;
}

}  // namespace planner
