#include "planner/report/report_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/json_estimate.hpp"
#include "costmodel/plan/pipeline.hpp"
#include "costmodel/plan/plan_keys.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "costmodel/scenario/residuals.hpp"

namespace planner {

using namespace costmodel;
using Plan = ParallelPlan;

namespace {

std::string bar(double fraction, std::size_t width) {
  std::string text;
  const auto full = std::lround(fraction * static_cast<double>(width));
  for (long i = 0; i < full; ++i) text += "█";
  return text;
}

// Of the bar of all of an iteration, beside names and figures in a line of so many.
std::size_t bar_columns(std::size_t width) {
  constexpr std::size_t most = 30, others = 56;
  return width >= others + most ? most : std::max<std::size_t>(width, others + 8) - others;
}

std::string stages_text(int from, int to) {
  return from == to ? fmt::format("{}", from) : fmt::format("{}-{}", from, to);
}

bool same(const StageMemory& a, const StageMemory& b) {
  return a.weights == b.weights && a.gradients == b.gradients && a.optimizer == b.optimizer &&
         a.activations == b.activations && a.buffers == b.buffers &&
         a.in_flight_micro_batches == b.in_flight_micro_batches;
}

// Layers of all chunks of each pipeline rank.
std::vector<int> layers_by_rank(const Estimate& e, const ModelSpec& model) {
  const auto& p = e.plan;
  std::vector<int> layers(static_cast<std::size_t>(p.pp), 0);
  for (const Pipeline& pipeline : pipelines_of(p, 0)) {
    const auto first = layers.begin() + pipeline.first_stage;
    const auto& own = pipeline.plan;
    for (int k = 0; k < own.virtual_stages(); ++k)
      first[rank_of(own.schedule, own.pp, k)] += layers_of(own, model, k);
  }
  return layers;
}

std::string context_text(const ParallelPlan& p) {
  if (p.cp == 1) return "1";
  return fmt::format("{} {}", p.cp, context_exchange_names[static_cast<std::size_t>(p.cp_comm)]);
}

std::string experts_text(const ParallelPlan& p) {
  return p.etp > 1 ? fmt::format("{} x {}", p.ep, p.etp) : fmt::format("{}", p.ep);
}

bool has_context(const ParallelPlan& p) { return p.cp > 1; }
bool has_experts(const ParallelPlan& p) { return p.ep > 1 || p.etp > 1; }
bool has_groups(const ParallelPlan& p) { return p.dp_replicate > 1; }
bool uses_host(const ParallelPlan& p) { return p.offload.any(); }
bool lists_layers(const ParallelPlan& p) { return !p.stage_layers.empty(); }

// A size of the stages: "4", or "8+4x2" where stages have sizes of their own.
template <class Size>
std::string size_cell(const Estimate& e, Size ParallelPlan::*size) {
  std::vector<int> sizes;
  for (const auto& mesh : e.meshes) sizes.push_back(static_cast<int>(mesh.plan.*size));
  const bool alike = std::ranges::adjacent_find(sizes, std::not_equal_to<>()) == sizes.end();
  if (!alike) return stage_layers_text(sizes);
  return fmt::format("{}", sizes.empty() ? static_cast<long long>(e.plan.*size) : sizes.front());
}

// Whether stages differ in what they recompute.
bool own_recompute(const Estimate& e) {
  return std::ranges::any_of(e.meshes, [&](const StageMesh& mesh) {
    return mesh.plan.recompute != e.meshes.front().plan.recompute;
  });
}

std::string recompute_cell(const Estimate& e) {
  if (own_recompute(e)) return "by stage";
  return to_string(e.meshes.empty() ? e.plan.recompute : e.meshes.front().plan.recompute);
}

std::string layers_cell(const ParallelPlan& p) {
  if (!lists_layers(p)) return "even";
  std::string text = stage_layers_text(p.stage_layers);
  constexpr std::size_t widest = 24;
  return text.size() <= widest ? text : "uneven";
}

// Whether `has` holds for any stage.
bool any_stage(const Estimate& e, bool (*has)(const ParallelPlan&)) {
  return std::ranges::any_of(e.meshes, [has](const StageMesh& mesh) { return has(mesh.plan); });
}

// A stage's own sizes, for heterogeneous stages; own_columns are their columns.
std::vector<std::string> own_cells(const Estimate& e, int rank) {
  if (e.meshes.empty()) return {};
  const StageMesh& mesh = e.meshes[static_cast<std::size_t>(rank)];
  std::vector<std::string> cells{mesh.name, fmt::format("{}", mesh.plan.tp),
                                 fmt::format("{}", mesh.plan.dp)};
  if (any_stage(e, has_context)) cells.push_back(context_text(mesh.plan));
  if (any_stage(e, has_experts)) cells.push_back(experts_text(mesh.plan));
  cells.insert(cells.end(), {fmt::format("{}", mesh.plan.micro_batch),
                             to_string(mesh.plan.recompute), fmt::format("{}", mesh.plan.zero)});
  return cells;
}

std::vector<Column> own_columns(const Estimate& e) {
  if (e.meshes.empty()) return {};
  std::vector<Column> columns{left("group"), "t", "d"};
  if (any_stage(e, has_context)) columns.push_back({"c", false});
  if (any_stage(e, has_experts)) columns.push_back({"e"});
  columns.insert(columns.end(), {"b", left("recompute", 2), right("ZeRO", 3)});
  return columns;
}

// The probability that a plan is really faster than another.
std::string chance(const Estimate& plan, const Estimate& other, double pair_spread) {
  const double p =
      costmodel::probability_faster(plan.iteration.value, other.iteration.value, pair_spread);
  return p < 0.01 ? "< 1 %" : fmt::format("{:.0f} %", 100 * p);
}

}  // namespace

std::string signed_percent(double ratio) { return fmt::format("{:+.1f} %", 100 * (ratio - 1)); }

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

Table time_table(const Estimate& e, std::size_t width, const std::optional<BusiestRank>& busiest) {
  Table t{{left("part"), right("time", 0), right("share", 0), left("")}};
  if (busiest) {
    const std::string rank = fmt::format("rank {}", busiest->rank);
    t.columns.insert(t.columns.end() - 1, {{rank, true, 2}, {"its share", true, 2}});
  }
  const std::size_t columns = bar_columns(width);
  const auto last = all_shares(e),
             longest = all_shares(e, busiest ? busiest->breakdown : e.breakdown);
  for (std::size_t i = 0; i < last.size(); ++i) {
    if (last[i].time.value == 0 && longest[i].time.value == 0) continue;
    auto& row = t.rows.emplace_back(std::vector<std::string>{last[i].name});
    const auto add = [&](const Share& share) {
      row.push_back(format_seconds(share.time));
      row.push_back(percent(share.of_iteration));
    };
    add(last[i]);
    if (busiest) add(longest[i]);
    row.push_back(bar(last[i].of_iteration, columns));
  }
  return t;
}

Table stage_table(const Estimate& e, const ModelSpec& model) {
  Table t{{"stage", right("layers", 2), "forward", "backward", right("in flight", 2), "weights",
           "gradients", "optimizer", "activations", right("buffers", 2), right("total", 0)}};
  const auto forward = by_rank(e.stage_forward, e.plan),
             backward = by_rank(e.stage_backward, e.plan);
  const auto layers = layers_by_rank(e, model);
  for (int r = 0; r < e.plan.pp;) {
    int to = r;  // equal neighbours share a row
    const auto& s = e.memory[static_cast<std::size_t>(r)];
    const auto equal = [&](int other) {
      return same(s, e.memory[static_cast<std::size_t>(other)]) &&
             layers[static_cast<std::size_t>(r)] == layers[static_cast<std::size_t>(other)] &&
             own_cells(e, r) == own_cells(e, other) &&
             forward[static_cast<std::size_t>(r)] == forward[static_cast<std::size_t>(other)];
    };
    while (to + 1 < e.plan.pp && equal(to + 1)) ++to;
    t.rows.push_back({stages_text(r, to), fmt::format("{}", layers[static_cast<std::size_t>(r)]),
                      format_seconds(Seconds(forward[static_cast<std::size_t>(r)])),
                      format_seconds(Seconds(backward[static_cast<std::size_t>(r)])),
                      fmt::format("{:.4g}", s.in_flight_micro_batches), format_gib(s.weights),
                      format_gib(s.gradients), format_gib(s.optimizer), format_gib(s.activations),
                      format_gib(s.buffers), format_gib(s.total())});
    const auto own = own_cells(e, r);
    t.rows.back().insert(t.rows.back().begin() + 2, own.begin(), own.end());
    r = to + 1;
  }
  const auto columns = own_columns(e);
  t.columns.insert(t.columns.begin() + 2, columns.begin(), columns.end());
  return t;
}

Table traffic_table(const Estimate& e) {
  using costmodel::Traffic;
  struct Kind {
    const char* name;
    Bytes Traffic::*bytes;
  };
  Table t{{"stage"}};
  std::vector<Kind> kinds;
  for (const Kind& kind :
       {Kind{"all-reduce", &Traffic::all_reduce}, Kind{"all-gather", &Traffic::all_gather},
        Kind{"reduce-scatter", &Traffic::reduce_scatter}, Kind{"all-to-all", &Traffic::all_to_all},
        Kind{"send", &Traffic::send}}) {
    const auto sends = [&](const Traffic& sent) { return (sent.*kind.bytes).value > 0; };
    if (std::ranges::any_of(e.rank_traffic, sends)) kinds.push_back(kind);
  }
  if (kinds.empty()) return t;
  for (const Kind& kind : kinds) t.columns.push_back({kind.name});
  t.columns.push_back({"total", true, 0});
  const auto ranks = static_cast<int>(e.rank_traffic.size());
  for (int r = 0; r < ranks;) {
    int to = r;  // equal neighbours share a row
    const Traffic& sent = e.rank_traffic[static_cast<std::size_t>(r)];
    while (to + 1 < ranks && e.rank_traffic[static_cast<std::size_t>(to) + 1] == sent) ++to;
    auto& row = t.rows.emplace_back(std::vector{stages_text(r, to)});
    for (const Kind& kind : kinds) row.push_back(format_bytes(sent.*kind.bytes));
    row.push_back(format_bytes(sent.total()));
    r = to + 1;
  }
  return t;
}

namespace {

// A ranking's rows with their members: "1", "1.2", "2".
struct Numbered {
  std::string number;
  Estimate estimate;
};
std::vector<Numbered> numbered(const std::vector<Estimate>& plans, const FamilyMembers& members) {
  std::vector<Numbered> all;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    all.push_back({fmt::format("{}", i + 1), plans[i]});
    for (std::size_t k = 0; i < members.size() && k < members[i].size(); ++k)
      all.push_back({fmt::format("{}.{}", i + 1, k + 2), members[i][k]});
  }
  return all;
}

}  // namespace

Table ranking_table(const std::vector<Estimate>& plans, double pair_spread,
                    const FamilyMembers& members) {
  Table t;
  const std::vector<Numbered> rows = numbered(plans, members);
  const auto any = [&rows](bool (*has)(const ParallelPlan&)) {
    return std::ranges::any_of(rows, [has](const Numbered& row) { return has(row.estimate.plan); });
  };
  const bool context = any(has_context), experts = any(has_experts), layers = any(lists_layers),
             groups = any(has_groups), host = any(uses_host);
  for (const auto* size : {"#", "t", "p", "d"}) t.columns.push_back({size});
  if (context) t.columns.push_back({"c", false});
  if (experts) t.columns.push_back({"e"});
  for (const auto* size : {"b", "v", "m"}) t.columns.push_back({size, true, 2});
  if (layers) t.columns.push_back({"layers", false, 3});
  t.columns.insert(t.columns.end(),
                   {left("schedule", 3), left("SP", 4), left("recompute", 2), "ZeRO"});
  if (groups) t.columns.push_back(right("groups", 3));
  if (host) t.columns.push_back(left("in host memory"));
  t.columns.insert(t.columns.end(),
                   {right("iteration", 0), right("vs best", 0), right("beats 1", 2),
                    right("GiB", 0), left("against the best", 0)});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Estimate& e = rows[i].estimate;
    const auto& p = e.plan;
    std::vector<std::string> row{rows[i].number,
                                 size_cell(e, &Plan::tp),
                                 fmt::format("{}", p.pp),
                                 size_cell(e, &Plan::dp),
                                 size_cell(e, &Plan::micro_batch),
                                 fmt::format("{}", p.vpp),
                                 fmt::format("{}", e.micro_batches)};
    if (experts) row.insert(row.begin() + 4, experts_text(p));
    if (context) row.insert(row.begin() + 4, context_text(p));
    if (layers) row.push_back(layers_cell(p));
    const std::string schedule = schedule_text(p);
    row.insert(row.end(), {schedule, p.sequence_parallel ? "yes" : "no", recompute_cell(e),
                           size_cell(e, &Plan::zero) + (p.zero_plus_plus.any() ? "++" : "")});
    if (groups) row.push_back(fmt::format("{}", p.dp_replicate));
    if (host) row.push_back(offload_text(p.offload));
    row.insert(row.end(), {format_seconds(e.iteration),
                           i == 0 ? "" : signed_percent(e.iteration / plans.front().iteration),
                           i == 0 ? "" : chance(e, plans.front(), pair_spread), format_gib(e.peak),
                           i == 0 ? "" : difference(plans.front(), e)});
    t.rows.push_back(std::move(row));
  }
  return t;
}

Table front_table(const std::vector<Estimate>& front, double pair_spread) {
  Table t = ranking_table(front, pair_spread);
  t.columns.insert(t.columns.end() - 1, {"free"});
  for (std::size_t i = 0; i < front.size(); ++i)
    t.rows[i].insert(t.rows[i].end() - 1, format_gib(front[i].capacity - front[i].peak));
  return t;
}

namespace {

// A key's value as a scenario takes it. Where stages differ in it, their values in order: "8+4x2".
std::string key_cell(const PlanKey& key, const Estimate& e) {
  const Value of_plan = key.value(e.plan);
  const bool of_stages = of_plan.is_scalar() || of_plan.is_map();
  if (e.meshes.empty() || !of_stages) return flow_text(of_plan);
  std::vector<std::string> cells;
  for (const auto& mesh : e.meshes) cells.push_back(flow_text(key.value(mesh.plan)));
  std::string text = cells.front();
  for (std::size_t from = 0, end = 1; end <= cells.size(); ++end) {
    if (end < cells.size() && cells[end] == cells[from]) continue;
    if (from > 0) text += "+" + cells[from];
    if (end - from > 1 && end - from < cells.size()) text += fmt::format("x{}", end - from);
    from = end;
  }
  return text;
}

struct Row {
  std::size_t rank;
  const char* role;
  const Estimate* estimate;
};

std::vector<Row> roles_of(const std::vector<Estimate>& plans,
                          const std::optional<Estimate>& fastest, const FamilyMembers& members) {
  const auto is_fastest = [&](const Estimate& e) { return fastest && e.plan == fastest->plan; };
  std::vector<Row> all;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    all.push_back({i + 1, i == 0 ? "chosen" : is_fastest(plans[i]) ? "fastest" : "", &plans[i]});
    const bool of_family = i == 0 && fastest && std::ranges::none_of(plans, is_fastest);
    if (of_family) all.push_back({1, "fastest", &*fastest});
    for (std::size_t k = 0; i < members.size() && k < members[i].size(); ++k)
      if (!is_fastest(members[i][k])) all.push_back({i + 1, "member", &members[i][k]});
  }
  return all;
}

}  // namespace

Table ranking_rows(const std::vector<Estimate>& plans, const PeakErrors& errors,
                   const std::optional<Estimate>& fastest, const FamilyMembers& members) {
  Table t{{"rank"}};
  for (const PlanKey& key : plan_key_rows())
    if (key.value) t.columns.push_back({std::string(key.row.name)});
  for (const auto* figure : {"micro_batches", "iteration_s", "low_s", "high_s", "tokens_per_s",
                             "mfu", "peak_gib", "fits_probability", "role"})
    t.columns.push_back({figure});
  for (const auto& [rank, role, estimate] : roles_of(plans, fastest, members)) {
    const Estimate& e = *estimate;
    std::vector<std::string> row{fmt::format("{}", rank)};
    for (const PlanKey& key : plan_key_rows())
      if (key.value) row.push_back(key_cell(key, e));
    row.push_back(fmt::format("{}", e.micro_batches));
    for (const double figure :
         {e.iteration.value, e.interval.low.value, e.interval.high.value, e.tokens_per_s})
      row.push_back(fmt::format("{:.6g}", figure));
    row.push_back(fmt::format("{:.4f}", e.mfu));
    row.push_back(fmt::format("{:.2f}", e.peak.value / (1 << 30)));
    row.push_back(fmt::format("{:.4f}", fits_probability(e.peak, e.capacity, errors)));
    row.emplace_back(role);
    t.rows.push_back(std::move(row));
  }
  return t;
}

Table step_table(const std::vector<Step>& steps, const Estimate& best) {
  Table t{{left("knob"), left("change", 0), "iteration", right("vs best", 0), "GiB", left("", 0)}};
  for (const Step& step : steps) {
    std::string remark = step.fits                    ? ""
                         : step.peak <= best.capacity ? "leaves too little free"
                                                      : "does not fit";
    if (step.breaks_fixed) remark += remark.empty() ? "(fixed)" : " (fixed)";
    t.rows.push_back({step.knob, step.change, format_seconds(step.iteration),
                      signed_percent(step.iteration / best.iteration), format_gib(step.peak),
                      remark});
  }
  return t;
}

}  // namespace planner
