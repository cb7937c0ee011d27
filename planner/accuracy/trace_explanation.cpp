#include "planner/accuracy/trace_explanation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "planner/accuracy/trace_report.hpp"
#include "planner/report/table.hpp"

namespace planner {

using namespace costmodel;

namespace {

Seconds computes(const TracedRank& rank) { return rank.times.kernels - rank.times.communication; }

// A rank counts as slower than others by this much.
constexpr double slower_rank = 1.02;

}  // namespace

std::vector<TraceGain> gains_of(const TraceExplanation& all, Seconds fixed) {
  const FittedTrace& trace = all.trace;
  const TraceTimes& times = trace.read.times;
  std::vector<TraceGain> gains;
  const double least = 0.005 * trace.unprofiled.value;
  const auto add = [&](std::string what, std::string remedy, Seconds gained) {
    if (gained.value >= least) gains.push_back({std::move(what), std::move(remedy), gained});
  };
  if (trace.host_bound) {
    add("the device waits for the host's launches",
        "larger micro-batches, torch.compile or CUDA graphs: fewer launches",
        trace.unprofiled - times.busy - fixed);
  }
  if (all.ranks.size() > 1) {
    const auto [fast, slow] = std::ranges::minmax(all.ranks, {}, computes);
    if (computes(slow) > slower_rank * computes(fast)) {
      add(fmt::format("rank {} computes longer than rank {}, and the others wait for it", slow.rank,
                      fast.rank),
          "the same work on each rank, or another device: its clock, power limit and temperature",
          computes(slow) - computes(fast));
    }
  }
  add("collectives run while nothing else does",
      "prefetch and overlap of gathers and reductions, fewer or larger messages", times.exposed);
  const auto steady = trace.read.steady();
  for (std::size_t kind = 0; kind < steady.size(); ++kind) {
    add(fmt::format("{}: slower than predicted", costmodel::kernel_kind_names[kind]),
        "another implementation of these kernels, or clocks and power limit of the device",
        steady[kind] - Seconds(trace.before.kinds[kind]));
  }
  std::ranges::sort(gains, std::ranges::greater{}, [](const TraceGain& g) { return g.gained; });
  return gains;
}

namespace {

std::string ranks_text(const std::vector<TracedRank>& ranks, const ReportStyle& style) {
  if (ranks.size() < 2) return "";
  Table table{{"rank", "busy ms", "kernels ms", "collectives ms", left("file")}};
  const auto ms = [](Seconds time) { return fmt::format("{:.2f}", 1e3 * time.value); };
  for (const TracedRank& rank : ranks) {
    const TraceTimes& t = rank.times;
    table.rows.push_back({fmt::format("{}", rank.rank), ms(t.busy), ms(t.kernels - t.communication),
                          ms(t.communication), rank.file});
  }
  const auto [least, most] = std::ranges::minmax(ranks, {}, computes);
  const double longer = computes(most) / computes(least);
  const std::string sentence =
      longer < slower_rank
          ? fmt::format("No rank computes {:.0f} % longer than another.", 100 * (slower_rank - 1))
          : fmt::format(
                "Rank {} computes {:.1f} % longer than rank {}; the others wait for it in "
                "collectives.",
                most.rank, 100 * (longer - 1), least.rank);
  return table_section("Ranks", table, style) + "\n" + bullet(sentence, style);
}

}  // namespace

std::string explanation_report(const TraceExplanation& all, const ReportStyle& style) {
  std::string text = trace_text(all.trace, style) +
                     table_section("By operator, as recorded", part_table(all.trace), style) +
                     ranks_text(all.ranks, style) +
                     section_title("What an iteration would gain", style);
  if (all.gains.empty())
    return text + bullet("Nothing takes longer than it need by a hundredth.", style);
  for (const TraceGain& gain : all.gains) {
    text += bullet(fmt::format("{}: {}; {}", gain.what, format_seconds(gain.gained), gain.remedy),
                   style);
  }
  return text;
}

std::vector<ActionTimes> action_times(const Trace& trace, const costmodel::Scenario& scenario,
                                      const costmodel::ParallelPlan& plan) {
  std::map<int, ActionTimes> ranks;
  std::map<int, Nanoseconds> computed;
  Nanoseconds begin = 0, end = 0;
  bool first = true;
  for (const TracedAction& action : trace.actions) {
    begin = first ? action.begin : std::min(begin, action.begin);
    end = first ? action.begin + action.length : std::max(end, action.begin + action.length);
    first = false;
    ActionTimes& of = ranks[action.rank];
    of.rank = action.rank;
    if (trace.text(action.stream) != "compute") continue;
    const std::string& name = trace.text(action.name);
    const Seconds time(1e-9 * static_cast<double>(action.length));
    (name.starts_with("forward") ? of.forward : of.backward) += time;
    computed[action.rank] += action.length;
  }
  costmodel::Evaluator evaluator(scenario.model, scenario.cluster, scenario.training);
  const costmodel::PlanCost& cost = evaluator.cost(plan);
  const auto m = static_cast<double>(cost.micro_batches);
  std::vector<ActionTimes> all;
  for (auto& [rank, of] : ranks) {
    of.idle = Seconds(1e-9 * static_cast<double>(end - begin - computed[rank]));
    const auto stage = static_cast<std::size_t>(rank);
    if (plan.chunks() == 1 && stage < cost.times.forward.size()) {
      of.predicted_forward = m * cost.times.forward[stage];
      of.predicted_backward = m * cost.times.backward[stage];
      if (stage < cost.times.weight_gradient.size())
        of.predicted_backward += m * cost.times.weight_gradient[stage];
    }
    all.push_back(of);
  }
  return all;
}

std::string actions_report(const Trace& trace, const std::vector<ActionTimes>& ranks,
                           const ReportStyle& style) {
  Table table{{"rank", "forward ms", "predicted", "backward ms", "predicted", "not computing ms"}};
  const auto ms = [](Seconds time) { return fmt::format("{:.3f}", 1e3 * time.value); };
  for (const ActionTimes& of : ranks) {
    table.rows.push_back({fmt::format("{}", of.rank), ms(of.forward), ms(of.predicted_forward),
                          ms(of.backward), ms(of.predicted_backward), ms(of.idle)});
  }
  return table_section(
      fmt::format("{}: an iteration of {} ranks' actions, {}", escaped(trace.file, style),
                  ranks.size(), format_seconds(trace.iteration)),
      table, style);
}

}  // namespace planner
