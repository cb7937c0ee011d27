#include "planner/report/schedule_comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "planner/report/table.hpp"

namespace planner {

using namespace costmodel;

namespace {

// Longer timelines take too long to draw that often.
constexpr std::int64_t most_compared_actions = std::int64_t{1} << 18;
constexpr int most_chart_ranks = 16;

// As if the framework had all schedules.
Scenario with_all_offered(Scenario s) {
  auto& offers = s.training.stack.offers;
  offers.interleaved = offers.zero_bubble = offers.dualpipe = true;
  return s;
}

// The chunks with which a schedule is compared: the plan's, or the fewest that divide the layers.
std::vector<int> chunks_tried(ScheduleKind kind, const ParallelPlan& plan, std::int64_t layers) {
  if (takes_chunks(kind, plan.vpp)) return {plan.vpp};
  std::vector<int> tried;
  for (int v = 1; v <= layers / plan.pp; ++v)
    if (takes_chunks(kind, v)) tried.push_back(v);
  if (tried.empty()) tried.push_back(row_of(kind).fewest_chunks);
  return tried;
}

// The plan with another schedule, or the first rule that it breaks.
std::string adapt(const Scenario& s, ScheduleKind kind, ParallelPlan& plan) {
  const ParallelPlan given = plan;
  std::string first;
  for (const int v : chunks_tried(kind, given, s.model.layers)) {
    const auto stages = std::int64_t{given.pp} * v;
    std::vector<std::vector<int>> layouts{{}};
    if (static_cast<std::int64_t>(given.stage_layers.size()) == stages)
      layouts.insert(layouts.begin(), given.stage_layers);
    if (stages <= s.model.layers) layouts.push_back(rest_on_last(s.model.layers, stages));
    for (const auto& layout : layouts) {
      plan = given;
      plan.schedule = kind;
      plan.listed = nullptr;
      plan.vpp = v;
      plan.stage_layers = layout;
      if (!row_of(kind).whole_rounds) plan.choices.group = 0;
      if (kind != ScheduleKind::zero_bubble_h2) plan.choices.in_flight = 0;
      const auto broken = violations(plan, s.model, s.cluster, s.training);
      if (broken.empty()) return {};
      if (first.empty()) first = broken.front().reason + "; " + broken.front().remedy;
    }
  }
  return first;
}

ComparedSchedule compared(const Scenario& all, const Scenario& s, const ParallelPlan& plan,
                          ScheduleKind kind) {
  ComparedSchedule one{.name = std::string(schedule_name(kind)),
                       .plan = plan,
                       .refused = {},
                       .estimate = {},
                       .timeline = {}};
  one.refused = adapt(all, kind, one.plan);
  if (!one.refused.empty()) return one;
  one.offered = not_offered(one.plan, s.training.stack).empty();
  Evaluator evaluator(all.model, all.cluster, all.training);
  one.estimate = evaluator.estimate(one.plan);
  if (3 * one.estimate.micro_batches * one.plan.virtual_stages() <= most_compared_actions)
    one.timeline = evaluator.timeline(one.plan);
  return one;
}

std::string remark(const ComparedSchedule& one) {
  std::string text = one.offered ? "" : "not offered by the stack";
  if (!one.estimate.fits()) text += text.empty() ? "does not fit" : ", does not fit";
  return text;
}

Table table_of(const std::vector<ComparedSchedule>& schedules) {
  Table table{{left("schedule"), right("v", 2), right("iteration", 0), right("pipeline", 2),
               "bubble", "peak", right("in flight", 2), left("", 0)}};
  for (const ComparedSchedule& one : schedules) {
    if (!one.refused.empty()) continue;
    const Estimate& e = one.estimate;
    table.rows.push_back({one.name, fmt::format("{}", one.plan.vpp), format_seconds(e.iteration),
                          format_seconds(e.pipeline),
                          fmt::format("{:.2f} %", 100 * e.bubble_fraction), format_bytes(e.peak),
                          fmt::format("{:.1f}", in_flight(e)), remark(one)});
  }
  return table;
}

double actions_of_a_rank(const Timeline& timeline) {
  const auto computes = [](const auto& e) { return e.stream == Stream::compute; };
  return static_cast<double>(std::ranges::count_if(timeline.events, computes)) /
         std::max(1, timeline.ranks);
}

std::string charts(const std::vector<ComparedSchedule>& schedules, int most_columns) {
  Seconds longest;
  for (const ComparedSchedule& one : schedules)
    if (one.plan.schedule != ScheduleKind::serial) longest = max(longest, one.timeline.end());
  if (longest <= Seconds(0)) return {};
  std::string text;
  for (const ComparedSchedule& one : schedules) {
    if (one.timeline.events.empty()) continue;
    Timeline shown = one.timeline;
    shown.ranks = std::min(shown.ranks, most_chart_ranks);
    std::erase_if(shown.events, [&](const auto& event) { return event.rank >= shown.ranks; });
    const Seconds end = min(one.timeline.end(), longest);
    const double columns = most_columns * (end / longest);
    text += fmt::format(
        "\n{}{}{}\n", one.name,
        shown.ranks < one.timeline.ranks ? fmt::format(", the first {} ranks", shown.ranks) : "",
        end < one.timeline.end() ? ", cut off" : "");
    text += chart_note(one.timeline, most_columns);
    text += to_chart(shown, std::max(1, static_cast<int>(std::lround(columns))), end);
  }
  return fmt::format(
             "\n{} are {} columns: f forward, B backward or input gradient, w weight gradient, x "
             "forward and backward together, d data parallel, o optimizer, . idle\n",
             format_seconds(longest), most_columns) +
         text;
}

}  // namespace

double in_flight(const Estimate& e) { return e.memory[e.fullest].in_flight_micro_batches; }

std::vector<ComparedSchedule> compared_schedules(const Scenario& scenario,
                                                 const ParallelPlan& plan) {
  const Scenario all = with_all_offered(scenario);
  std::vector<ComparedSchedule> schedules;
  for (std::size_t i = 0; i < schedule_names().size(); ++i)
    schedules.push_back(compared(all, scenario, plan, static_cast<ScheduleKind>(i)));
  return schedules;
}

int chart_columns(std::size_t width) {
  constexpr std::size_t most = 100, beside = 7;  // the rank's number and the bars at both ends
  return static_cast<int>(std::min(most, width - beside));
}

std::string chart_note(const Timeline& timeline, int columns) {
  const double each = actions_of_a_rank(timeline) / columns;
  if (each <= 1) return "";
  return fmt::format(
      "A column stands for {:.1f} actions of a rank: letters have their shares of the time, their "
      "order is not the actions'.\n",
      each);
}

std::string schedule_times_note() {
  return "Iteration: from the first start to the last end; where ranks do not wait for one another "
         "between iterations, the longest time of one rank, and the drawing is longer than that.";
}

std::string schedule_comparison(const std::vector<ComparedSchedule>& schedules, std::size_t width) {
  std::string text = to_text(table_of(schedules), 2, width);
  for (const ComparedSchedule& one : schedules)
    if (!one.refused.empty()) text += fmt::format("  {}: {}\n", one.name, one.refused);
  text += "\n" + schedule_times_note() + "\n";
  return text + charts(schedules, chart_columns(width));
}

}  // namespace planner
