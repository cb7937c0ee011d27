#include "planner/report_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "costmodel/cluster_groups.hpp"
#include "costmodel/mesh.hpp"
#include "costmodel/units_text.hpp"

namespace planner {

using costmodel::Bytes;
using costmodel::Estimate;
using costmodel::format_bytes;
using costmodel::format_gib;
using costmodel::format_integer;
using costmodel::format_seconds;
using costmodel::Scenario;
using costmodel::Seconds;

namespace {

std::string title(const std::string& text, const ReportStyle& s) {
  return s.markup == Markup::markdown ? "\n### " + text + "\n\n" : "\n" + s.style.bold(text) + "\n";
}

std::string table(const Table& t, const ReportStyle& s) {
  return s.markup == Markup::markdown ? to_markdown(t) : to_text(t);
}

std::string bullet(const std::string& text, const ReportStyle& s) {
  return (s.markup == Markup::markdown ? "- " : "  ") + text + "\n";
}

std::string fact(const std::string& name, const std::string& value, const ReportStyle& s) {
  if (s.markup == Markup::markdown) return fmt::format("- **{}**: {}\n", name, value);
  return fmt::format("{}{}\n", s.style.bold(fmt::format("{:<11}", name)), value);
}

std::string bar(double fraction) {
  static constexpr int width = 30;
  std::string text;
  const int full = static_cast<int>(std::lround(fraction * width));
  for (int i = 0; i < full; ++i) text += "█";
  return text;
}

std::string stages_text(int from, int to) {
  return from == to ? fmt::format("{}", from) : fmt::format("{}-{}", from, to);
}

bool same(const costmodel::StageMemory& a, const costmodel::StageMemory& b) {
  return a.weights == b.weights && a.gradients == b.gradients && a.optimizer == b.optimizer &&
         a.activations == b.activations && a.buffers == b.buffers &&
         a.in_flight_micro_batches == b.in_flight_micro_batches;
}

// Layers of all chunks of a pipeline rank.
int rank_layers(const Estimate& e, const costmodel::ModelSpec& model, int rank) {
  int layers = 0;
  for (int k = rank; k < e.plan.virtual_stages(); k += e.plan.pp)
    layers += layers_of(e.plan, model, k);
  return layers;
}

Seconds rank_time(const std::vector<Seconds>& by_stage, int rank, int pp) {
  Seconds sum;
  for (std::size_t k = static_cast<std::size_t>(rank); k < by_stage.size();
       k += static_cast<std::size_t>(pp))
    sum += by_stage[k];
  return sum;
}

Table time_table(const Estimate& e) {
  Table t{{{"part", false}, {"time"}, {"share"}, {"", false}}, {}};
  for (const Share& share : shares(e)) {
    t.rows.push_back({share.name, format_seconds(share.time),
                      fmt::format("{:.1f} %", 100 * share.of_iteration), bar(share.of_iteration)});
  }
  return t;
}

// What a stage has of its own where stages differ.
std::vector<std::string> own_cells(const Estimate& e, int rank) {
  if (e.meshes.empty()) return {};
  const costmodel::StageMesh& mesh = e.meshes[static_cast<std::size_t>(rank)];
  return {mesh.name,
          fmt::format("{}", mesh.plan.tp),
          fmt::format("{}", mesh.plan.dp),
          fmt::format("{}", mesh.plan.micro_batch),
          to_string(mesh.plan.recompute),
          fmt::format("{}", mesh.plan.zero)};
}

Table stage_table(const Estimate& e, const costmodel::ModelSpec& model) {
  Table t{{{"stage"},
           {"layers"},
           {"forward"},
           {"backward"},
           {"in flight"},
           {"weights"},
           {"gradients"},
           {"optimizer"},
           {"activations"},
           {"buffers"},
           {"total"}},
          {}};
  for (int r = 0; r < e.plan.pp;) {
    int to = r;  // equal neighbours share a line
    const auto& s = e.memory[static_cast<std::size_t>(r)];
    const auto equal = [&](int other) {
      return same(s, e.memory[static_cast<std::size_t>(other)]) &&
             rank_layers(e, model, r) == rank_layers(e, model, other) &&
             own_cells(e, r) == own_cells(e, other) &&
             rank_time(e.stage_forward, r, e.plan.pp) ==
                 rank_time(e.stage_forward, other, e.plan.pp);
    };
    while (to + 1 < e.plan.pp && equal(to + 1)) ++to;
    t.rows.push_back({stages_text(r, to), fmt::format("{}", rank_layers(e, model, r)),
                      format_seconds(rank_time(e.stage_forward, r, e.plan.pp)),
                      format_seconds(rank_time(e.stage_backward, r, e.plan.pp)),
                      fmt::format("{:.4g}", s.in_flight_micro_batches), format_gib(s.weights),
                      format_gib(s.gradients), format_gib(s.optimizer), format_gib(s.activations),
                      format_gib(s.buffers), format_gib(s.total())});
    const auto own = own_cells(e, r);
    t.rows.back().insert(t.rows.back().begin() + 2, own.begin(), own.end());
    r = to + 1;
  }
  if (e.meshes.empty()) return t;
  const std::array<Column, 6> columns{
      {{"group", false}, {"t"}, {"d"}, {"b"}, {"recompute", false}, {"ZeRO"}}};
  t.columns.insert(t.columns.begin() + 2, columns.begin(), columns.end());
  return t;
}

Table traffic_table(const Estimate& e) {
  Table t{{{"collective", false}, {"bytes sent"}}, {}};
  const auto add = [&](const char* name, Bytes bytes) {
    if (bytes.value > 0) t.rows.push_back({name, format_bytes(bytes)});
  };
  add("all-reduce", e.traffic.all_reduce);
  add("all-gather", e.traffic.all_gather);
  add("reduce-scatter", e.traffic.reduce_scatter);
  add("all-to-all", e.traffic.all_to_all);
  add("send", e.traffic.send);
  return t;
}

// Whole from a hundred up, three digits below.
std::string rounded(double n) {
  return n >= 100 ? format_integer(std::llround(n)) : fmt::format("{:.3g}", n);
}

std::string signed_percent(double ratio) { return fmt::format("{:+.1f} %", 100 * (ratio - 1)); }

// The probability that a plan is really faster than another.
std::string chance(const Estimate& plan, const Estimate& other, double pair_spread) {
  const double p =
      costmodel::probability_faster(plan.iteration.value, other.iteration.value, pair_spread);
  return p < 0.01 ? "< 1 %" : fmt::format("{:.0f} %", 100 * p);
}

std::string mfu_text(const Estimate& e) {
  return fmt::format("{:.1f} % (attention in full, no recomputation)   HFU {:.1f} %   {} a device",
                     100 * e.mfu, 100 * e.hfu, format_rate(e.model_rate_per_device));
}

}  // namespace

std::string heading(const Scenario& s, const ReportStyle& style) {
  const std::string model = s.model.title.empty() ? s.model_text : s.model.title;
  const std::string active =
      s.model.experts > 0
          ? fmt::format(", {} active", costmodel::format_count(active_parameter_count(s.model)))
          : "";
  const std::string what = fmt::format(
      "{} ({} parameters{}) on {} of {}", model, costmodel::format_count(parameter_count(s.model)),
      active, devices_text(s.cluster), s.cluster.title.empty() ? s.cluster_text : s.cluster.title);
  const std::string how = fmt::format(
      "global batch {} x {} tokens, {}, stack {}", format_integer(s.training.global_batch),
      format_integer(s.training.sequence), to_string(s.training.precision), s.training.stack.name);
  if (style.markup == Markup::markdown) return "## " + what + "\n\n" + how + "\n";
  return style.style.bold(what) + "\n" + how + "\n";
}

std::string plan_report(const Estimate& e, const Scenario& s, const ReportStyle& style) {
  std::string text = "\n";
  text += fact("Plan", to_string(e.plan) + fmt::format("  (m {})", e.micro_batches), style);
  text += fact("Iteration",
               fmt::format("{}   (90 % interval {} to {})", format_seconds(e.iteration),
                           format_seconds(e.interval.low), format_seconds(e.interval.high)),
               style);
  text += fact("Throughput",
               fmt::format("{} tokens/s   {} a device", rounded(e.tokens_per_s),
                           rounded(e.tokens_per_s / static_cast<double>(s.cluster.devices))),
               style);
  text += fact("MFU", mfu_text(e), style);
  const std::string fits = e.fits() ? style.style.good("fits") : style.style.bad("DOES NOT FIT");
  text += fact("Memory",
               fmt::format("{} of {} on the fullest stage: {}", format_bytes(e.peak),
                           format_bytes(e.capacity), fits),
               style);
  text += title(
      fmt::format(
          "Where the time goes (pipeline rank {}, the last to finish; bubble {:.1f} % of ideal)",
          e.critical_rank, 100 * e.bubble_fraction),
      style);
  text += table(time_table(e), style);
  text +=
      title("Pipeline stages: one micro-batch, and memory on each of their devices in GiB", style);
  text += table(stage_table(e, s.model), style);
  const Table traffic = traffic_table(e);
  if (!traffic.rows.empty()) {
    text += title("Sent by the busiest device in one iteration", style);
    text += table(traffic, style);
  }
  if (!e.notes.empty()) {
    text += title("Assumed", style);
    for (const auto& note : e.notes) text += bullet(note, style);
  }
  return text;
}

Table ranking_rows(const std::vector<Estimate>& plans) {
  Table t;
  for (const auto* size : {"rank", "tp", "pp", "dp", "cp", "cp_comm", "ep", "etp", "micro_batch",
                           "vpp", "micro_batches"})
    t.columns.push_back({size});
  for (const auto* key : {"schedule", "sequence_parallel", "recompute", "recompute_layers", "zero",
                          "iteration_s", "tokens_per_s", "mfu", "peak_gib"}) {
    t.columns.push_back({key});
  }
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Estimate& e = plans[i];
    const auto& p = e.plan;
    t.rows.push_back(
        {fmt::format("{}", i + 1),
         fmt::format("{}", p.tp),
         fmt::format("{}", p.pp),
         fmt::format("{}", p.dp),
         fmt::format("{}", p.cp),
         p.cp > 1
             ? std::string(costmodel::context_exchange_names[static_cast<std::size_t>(p.cp_comm)])
             : "none",
         fmt::format("{}", p.ep),
         fmt::format("{}", p.etp),
         fmt::format("{}", p.micro_batch),
         fmt::format("{}", p.vpp),
         fmt::format("{}", e.micro_batches),
         std::string(costmodel::schedule_names[static_cast<std::size_t>(p.schedule)]),
         p.sequence_parallel ? "true" : "false",
         std::string(
             costmodel::recomputation_names[static_cast<std::size_t>(p.recompute.granularity)]),
         fmt::format("{}", p.recompute.layers),
         fmt::format("{}", p.zero),
         fmt::format("{:.6g}", e.iteration.value),
         fmt::format("{:.6g}", e.tokens_per_s),
         fmt::format("{:.4f}", e.mfu),
         fmt::format("{:.2f}", e.peak.value / (1 << 30))});
  }
  return t;
}

namespace {

std::string context_text(const costmodel::ParallelPlan& p) {
  if (p.cp == 1) return "1";
  return fmt::format("{} {}", p.cp,
                     costmodel::context_exchange_names[static_cast<std::size_t>(p.cp_comm)]);
}

}  // namespace

Table ranking_table(const std::vector<Estimate>& plans, double pair_spread) {
  Table t;
  const bool context =
      std::any_of(plans.begin(), plans.end(), [](const Estimate& e) { return e.plan.cp > 1; });
  for (const auto* size : {"#", "t", "p", "d"}) t.columns.push_back({size});
  if (context) t.columns.push_back({"c", false});
  const bool experts = std::any_of(plans.begin(), plans.end(), [](const Estimate& e) {
    return e.plan.ep > 1 || e.plan.etp > 1;
  });
  if (experts) t.columns.push_back({"e"});
  for (const auto* size : {"b", "v", "m"}) t.columns.push_back({size});
  for (const auto* word : {"schedule", "SP", "recompute"}) t.columns.push_back({word, false});
  for (const auto* figure : {"ZeRO", "iteration", "vs best", "beats 1", "GiB"})
    t.columns.push_back({figure});
  t.columns.push_back({"against the best", false});
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Estimate& e = plans[i];
    const auto& p = e.plan;
    std::vector<std::string> row;
    for (const long long n :
         {static_cast<long long>(i) + 1, static_cast<long long>(p.tp), static_cast<long long>(p.pp),
          static_cast<long long>(p.dp), static_cast<long long>(p.micro_batch),
          static_cast<long long>(p.vpp), static_cast<long long>(e.micro_batches)}) {
      row.push_back(fmt::format("{}", n));
    }
    if (experts) {
      row.insert(row.begin() + 4,
                 p.etp > 1 ? fmt::format("{} x {}", p.ep, p.etp) : fmt::format("{}", p.ep));
    }
    if (context) row.insert(row.begin() + 4, context_text(p));
    const std::string schedule(costmodel::schedule_names[static_cast<std::size_t>(p.schedule)]);
    row.insert(row.end(), {schedule, p.sequence_parallel ? "yes" : "no", to_string(p.recompute),
                           fmt::format("{}", p.zero), format_seconds(e.iteration),
                           i == 0 ? "" : signed_percent(e.iteration / plans.front().iteration),
                           i == 0 ? "" : chance(e, plans.front(), pair_spread), format_gib(e.peak),
                           i == 0 ? "" : difference(plans.front(), e)});
    t.rows.push_back(std::move(row));
  }
  return t;
}

namespace {

Table step_table(const std::vector<Step>& steps, const Estimate& best) {
  Table t{{{"knob", false}, {"change", false}, {"iteration"}, {"vs best"}, {"GiB"}, {"", false}},
          {}};
  for (const Step& step : steps) {
    t.rows.push_back({step.knob, step.change, format_seconds(step.iteration),
                      signed_percent(step.iteration / best.iteration), format_gib(step.peak),
                      step.fits ? "" : "does not fit"});
  }
  return t;
}

}  // namespace

namespace {

// What was found in the field's words, and then operator by operator.
std::string sharding_text(const StageSharding& s, const ReportStyle& style) {
  std::string text = title("Sharding inside a stage", style);
  for (const auto& sentence : sharding_sentences(s)) text += bullet(sentence, style);
  if (!s.found.choice.empty()) text += table(sharding_table(s), style);
  return text;
}

}  // namespace

std::string search_report(const Strategies& all, const std::vector<Step>& steps, const Scenario& s,
                          double seconds, const ReportStyle& style) {
  const SearchResult& r = all.found;
  const Estimate& best = r.plans.front();
  std::string text = heading(s, style) + plan_report(best, s, style);
  text += title("Why this plan", style);
  for (const auto& reason : reasons(best)) text += bullet(reason, style);
  if (r.plans.size() > 1) {
    text += bullet(fmt::format("The runner-up is {} slower: {}.",
                               signed_percent(r.plans[1].iteration / best.iteration).substr(1),
                               difference(best, r.plans[1])),
                   style);
  }
  text += title(
      "Ranking (beats 1: the chance, by errors of published runs, of being really faster)", style);
  text += table(ranking_table(r.plans, s.training.error_band.pair_spread), style);
  text += title("One step away from the best", style);
  text += table(step_table(steps, best), style);
  if (all.layouts) text += title("Even stages and others", style);
  for (const auto& sentence : strategy_sentences(all)) text += bullet(sentence, style);
  if (all.sharding) text += sharding_text(*all.sharding, style);
  const auto& n = r.statistics;
  text += title("Search", style);
  text += bullet(fmt::format("{} valid plans in {}: {} evaluated, {} of them fit, {} simulated, {} "
                             "ruled out by their lower bound.",
                             format_integer(static_cast<long long>(n.configurations)),
                             format_seconds(Seconds(seconds)),
                             format_integer(static_cast<long long>(n.evaluated)),
                             format_integer(static_cast<long long>(n.feasible)),
                             format_integer(static_cast<long long>(n.simulated)),
                             format_integer(static_cast<long long>(n.pruned))),
                 style);
  text +=
      bullet(fmt::format("Proved: under this cost model no plan of the space takes less than {}.",
                         format_seconds(r.lower_bound)),
             style);
  return text;
}

std::string failure_report(const SearchResult& r, const Diagnosis& d, const Scenario& s,
                           const ReportStyle& style) {
  std::string text = heading(s, style);
  if (r.statistics.configurations == 0) {
    text += "\nNo plan obeys the rules for these devices, this batch and the fixed keys.\n";
  } else {
    text +=
        fmt::format("\nNothing fits: none of {} valid plans stays within {} of device memory.\n",
                    format_integer(static_cast<long long>(r.statistics.configurations)),
                    format_bytes(memory_limit(s)));
  }
  text += title("What stands in the way", style);
  for (const auto& line : d.obstacles) text += bullet(line, style);
  text += title("What would help", style);
  if (d.remedies.empty()) {
    text += bullet(
        "nothing that was tried: neither freeing a fixed key, nor up to 64 times the devices, nor "
        "half the sequence",
        style);
  }
  for (const auto& line : d.remedies) text += bullet(line, style);
  return text;
}

}  // namespace planner
