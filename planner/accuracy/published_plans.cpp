#include "planner/accuracy/published_plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <numeric>
#include <tuple>
#include <utility>

#include "costmodel/base/parallel_for.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/estimate/plan_estimate.hpp"
#include "costmodel/machine/cluster_groups.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "planner/search/settled_plan.hpp"
#include "planner/search/strategy.hpp"

namespace planner {

using namespace costmodel;

namespace {

// The scenario with its plan freed for the search.
Scenario freed(const Scenario& of) {
  Scenario s = of;
  s.plan = {};
  if (of.plan.cp.value_or(1) > 1) s.plan.cp = of.plan.cp;
  if (of.plan.ep.value_or(1) > 1) s.plan.ep = of.plan.ep;
  s.search.top = 1;
  s.search.memory_margin = 0;  // they ran on all of the memory
  return s;
}

// Equal keys share a search. Equivalent scenarios that are written differently are searched twice.
std::string key_of(const EvidenceRun& run, const Scenario& free) {
  Value map;
  map.kind = Value::Kind::map;
  for (const auto& entry : run.scenario.entries) {
    if (entry.key != "plan") map.set(entry.key, entry.value);
  }
  return fmt::format("{}cp {} ep {}", to_yaml(map), free.plan.cp.value_or(0),
                     free.plan.ep.value_or(0));
}

ExpertWorkload described(const Scenario& s) {
  ExpertWorkload w;
  w.model = fmt::format("{} {}", costmodel::format_count(parameter_count(s.model)),
                        costmodel::model_kind_names[static_cast<std::size_t>(s.model.kind)]);
  w.rest = fmt::format("{} x {}, batch {} x {}, {}, {}", format_integer(s.cluster.devices),
                       device_names(s.cluster), format_integer(s.training.global_batch),
                       format_integer(s.training.sequence), to_string(s.training.precision),
                       s.training.stack.name);
  return w;
}

struct Task {
  Scenario scenario;
  std::size_t at = 0;  // of runs, or of workloads
};

void search_workload(const Scenario& s, bool layouts, ExpertWorkload& workload) {
  const auto first = [](const std::vector<Estimate>& plans) {
    return plans.empty() ? std::optional<Estimate>() : plans.front();
  };
  const Reach reach = layouts ? Reach::layouts : Reach::even;
  const Strategies all = run_strategies(s, stages_alike(s) ? reach : Reach::meshes, 1, {});
  workload.even = first(all.meshes ? all.meshes->plans : all.even);
  if (all.layouts) workload.any = first(all.layouts->plans);
  if (workload.best() == nullptr) workload.error = "no plan fits in memory";
}

void price_run(Scenario& s, ExpertRun& run) {
  take_defaults(s);
  const auto settled = settled_run(s);
  if (settled) {
    run.own = estimate_of(s.model, s.cluster, s.training, settled->plan);
  } else {
    run.error = no_valid_choice;
  }
}

// The work of a comparison: scenarios read, searches shared.
struct Agenda {
  std::vector<Task> prices, searches;
};

void add_run(const EvidenceRun& run, const costmodel::ConfigPath& path, Agenda& agenda,
             std::map<std::string, std::size_t>& known, ExpertComparison& result) {
  ExpertRun priced{run.source, run.id, run.measured.iteration, 0, {}, ""};
  try {
    const Scenario s = scenario_of(run, path);
    const Scenario free = freed(s);
    const auto [at, fresh] = known.emplace(key_of(run, free), result.workloads.size());
    if (fresh) {
      result.workloads.push_back(described(s));
      agenda.searches.push_back({free, at->second});
    }
    priced.workload = at->second;
    agenda.prices.push_back({s, result.runs.size()});
  } catch (const costmodel::ConfigError& fault) {
    priced.error = fault.what();
  }
  result.runs.push_back(std::move(priced));
}

// Sorts the sizes of one model next to each other.
void sort_workloads(const std::vector<Task>& searches, ExpertComparison& result) {
  std::vector<std::size_t> order(searches.size()), place(searches.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto rank = [&](std::size_t i) {
    const Scenario& s = searches[i].scenario;
    return std::tuple(s.model.kind, parameter_count(s.model), s.cluster.devices);
  };
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  std::vector<ExpertWorkload> sorted;
  for (const std::size_t i : order) {
    place[i] = sorted.size();
    sorted.push_back(std::move(result.workloads[i]));
  }
  result.workloads = std::move(sorted);
  for (ExpertRun& run : result.runs) {
    if (!place.empty()) run.workload = place[run.workload];
  }
}

// Searches take longest, so they start first.
void work_off(Agenda& agenda, const ComparisonRequest& request, ExpertComparison& result) {
  const std::size_t all = agenda.searches.size() + agenda.prices.size();
  std::size_t done = 0;
  std::mutex telling;
  costmodel::share_out(all, request.threads, [&](std::size_t i) {
    const bool searches = i < agenda.searches.size();
    Task& task = searches ? agenda.searches[i] : agenda.prices[i - agenda.searches.size()];
    try {
      if (searches) {
        search_workload(task.scenario, request.layouts, result.workloads[task.at]);
      } else {
        price_run(task.scenario, result.runs[task.at]);
      }
    } catch (const costmodel::ConfigError& fault) {
      (searches ? result.workloads[task.at].error : result.runs[task.at].error) = fault.what();
    }
    const std::lock_guard lock(telling);
    ++done;
    if (request.progress) request.progress(done, all);
  });
}

}  // namespace

std::optional<double> ExpertComparison::gain_pct(const ExpertRun& run) const {
  if (!run.own) return {};
  const Estimate* best = workloads[run.workload].best();
  if (best == nullptr) return {};
  return 100 * (1 - best->iteration / run.own->iteration);
}

ExpertComparison compare_with_experts(const std::vector<EvidenceRun>& runs,
                                      const costmodel::ConfigPath& path,
                                      const ComparisonRequest& request) {
  ExpertComparison result;
  result.layouts = request.layouts;
  Agenda agenda;
  std::map<std::string, std::size_t> known;
  for (const EvidenceRun& run : runs) {
    if (run.measured.ran()) add_run(run, path, agenda, known, result);
  }
  work_off(agenda, request, result);
  sort_workloads(agenda.searches, result);
  return result;
}

ComparisonFigures figures_of(const ExpertComparison& comparison, const std::string& source) {
  ComparisonFigures f;
  std::vector<double> gains;
  for (const ExpertRun& run : comparison.runs) {
    if (!run.own || (!source.empty() && run.source != source)) continue;
    ++f.runs;
    const auto gain = comparison.gain_pct(run);
    if (gain) gains.push_back(*gain);
    ++(gain && *gain >= -equal_pct ? f.as_fast : f.slower);
  }
  if (gains.empty()) return f;
  std::ranges::sort(gains);
  const std::size_t middle = gains.size() / 2;
  f.median_gain_pct =
      gains.size() % 2 == 1 ? gains[middle] : (gains[middle - 1] + gains[middle]) / 2;
  f.smallest_gain_pct = gains.front();
  f.largest_gain_pct = gains.back();
  return f;
}

namespace {

double loss_pct(const ExpertComparison& comparison, const ExpertRun& run) {
  return -comparison.gain_pct(run).value_or(-std::numeric_limits<double>::infinity());
}

}  // namespace

double worst_loss_pct(const ExpertComparison& comparison) {
  double worst = -std::numeric_limits<double>::infinity();
  for (const ExpertRun& run : comparison.runs) {
    if (run.own) worst = std::max(worst, loss_pct(comparison, run));
  }
  return worst;
}

std::vector<const ExpertRun*> slower_runs(const ExpertComparison& comparison) {
  std::vector<const ExpertRun*> slower;
  for (const ExpertRun& run : comparison.runs) {
    if (run.own && loss_pct(comparison, run) > equal_pct) slower.push_back(&run);
  }
  std::ranges::stable_sort(slower, [&](const auto* a, const auto* b) {
    return loss_pct(comparison, *a) > loss_pct(comparison, *b);
  });
  return slower;
}

}  // namespace planner
