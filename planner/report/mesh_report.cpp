#include "planner/report/mesh_report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/plan/mesh.hpp"
#include "costmodel/plan/pipeline.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "costmodel/plan/stage_plan.hpp"
#include "planner/report/strategy_text.hpp"
#include "planner/search/replica_plan.hpp"

namespace planner {

using namespace costmodel;

namespace {

std::string stages_text(const Estimate& e) {
  std::string text;
  for (const auto& g : e.plan.replica_groups) {
    text += fmt::format("{}{} x {} x {} x {} on {}", text.empty() ? "replicas " : ", ", g.tp, g.pp,
                        g.dp, g.micro_batches, g.group);
  }
  if (!text.empty()) return text;
  for (std::size_t k = 0; k < e.meshes.size(); ++k) {
    const auto& mesh = e.meshes[k];
    const std::string more = context_and_experts_text(mesh.plan, " ");
    text += fmt::format("{}{} x {} x {}{}{}", k > 0 ? ", " : "", mesh.plan.tp, mesh.plan.dp,
                        e.plan.stage_layers[k], more.empty() ? "" : " " + more,
                        mesh.name.empty() ? "" : " on " + mesh.name);
  }
  return text;
}

std::string proved(const MeshSearch& found) {
  const std::string least = format_seconds(found.lower_bound);
  if (found.plans.empty())
    return fmt::format("Proved: no plan that is searched takes less than {}.", least);
  const double gap = 100 * (found.plans.front().iteration / found.lower_bound - 1);
  return fmt::format(
      "Proved: no plan that is searched takes less than {}{}; the {} is within {:.2f} %.", least,
      found.expired ? ", where time ran out the model's FLOPs at the peak of all devices" : "",
      found.fastest ? "chosen plan" : "best", gap);
}

// Which pipelines keep the gap open: "pipelines of 6 stages on t4, then v100 with ...".
std::string held_by(const MeshSearch& found, const Scenario& s) {
  const LeastBound& held = found.held_by;
  const std::string stages = held.least_stages == held.most_stages
                                 ? fmt::format("{}", held.least_stages)
                                 : fmt::format("{} to {}", held.least_stages, held.most_stages);
  std::string on;
  if (s.cluster.groups.size() > 1) {
    for (const int g : held.order)
      on += (on.empty() ? " on " : ", then ") + s.cluster.groups[static_cast<std::size_t>(g)].name;
  }
  return fmt::format(
      "Pipelines of {} stage{}{} with {} sequence{} a micro-batch hold the gap: their bound counts "
      "of every transfer the least that one of its stages needs, and of a rank's waits the longest "
      "kind only.",
      stages, stages == "1" ? "" : "s", on, held.sequences, held.sequences == 1 ? "" : "s");
}

// Gaps below this are told as they are, in per cent.
constexpr double explained_gap = 1;

bool gap_is_open(const MeshSearch& found) {
  if (found.plans.empty() || found.held_by.sequences == 0) return false;
  const Estimate& fastest = found.fastest ? *found.fastest : found.plans.front();
  return 100 * (fastest.iteration / found.lower_bound - 1) >= explained_gap;
}

}  // namespace

std::vector<std::string> mesh_sentences(const MeshSearch& found, const Scenario& s) {
  const auto count = [](std::uint64_t n) { return format_integer(static_cast<long long>(n)); };
  std::vector<std::string> lines;
  lines.push_back(fmt::format(
      "{} orders of the groups and {} sizes of a micro-batch: {} cuts into stages on submeshes by "
      "a bound that knows the bubble; {} iterations simulated, {} plans improved.",
      count(found.orders), count(found.batches), count(found.sliced), count(found.simulated),
      count(found.improved)));
  lines.push_back(
      fmt::format("{} stages priced; {} sizes of a micro-batch ruled out by their first bounds.",
                  count(found.priced), count(found.ruled_out)));
  if (std::isfinite(found.lower_bound.value) && found.interrupted.empty())
    lines.push_back(proved(found));
  if (found.fastest) lines.push_back(fastest_sentence(found.plans.front(), found.fastest, s));
  if (found.interrupted.empty() && gap_is_open(found)) lines.push_back(held_by(found, s));
  lines.push_back(
      "Not searched: virtual stages, schedules but 1f1b, tensor groups wider than a node, idle "
      "devices, groups that alternate along the pipeline, unequal shares of a micro-batch.");
  if (found.replicas) {
    for (auto& line : replica_sentences(*found.replicas, s, best_pipeline(found)))
      lines.push_back(std::move(line));
  }
  if (!found.interrupted.empty()) {
    lines.push_back(fmt::format("The search was {}.", interruption(found)));
  } else if (found.expired && !found.plans.empty()) {
    lines.emplace_back("Time ran out: these are the best plans so far.");
  }
  return lines;
}

Table mesh_rows(const MeshSearch& found) {
  Table t{{"rank", left("stages", 0), right("sequences", 2), right("m", 2), right("iteration_s", 0),
           "low_s", "high_s", right("tokens_per_s", 2), right("mfu", 2), "peak_gib"}};
  for (std::size_t i = 0; i < found.plans.size(); ++i) {
    const Estimate& e = found.plans[i];
    const bool pipeline = e.plan.pipelines() == 1;  // else every one has its own
    t.rows.push_back(
        {fmt::format("{}", i + 1), stages_text(e),
         pipeline ? fmt::format("{}", e.plan.dp * e.plan.micro_batch) : "",
         pipeline ? fmt::format("{}", e.micro_batches) : "",
         fmt::format("{:.6g}", e.iteration.value), fmt::format("{:.6g}", e.interval.low.value),
         fmt::format("{:.6g}", e.interval.high.value), fmt::format("{:.6g}", e.tokens_per_s),
         fmt::format("{:.4f}", e.mfu), fmt::format("{:.2f}", e.peak.value / (1 << 30))});
  }
  return t;
}

std::string mesh_report(const MeshSearch& found, const Scenario& s, std::optional<double> seconds,
                        const ReportStyle& style, const std::string& remark) {
  const auto title = [&](const std::string& words) { return section_title(words, style); };
  std::string text = heading(s, style);
  if (found.plans.empty()) {
    text += fmt::format("\nNo plan was found: {}.\n", escaped(found.reason, style));
  } else {
    text += plan_report(found.plans.front(), s, style);
    text += title(
        "Ranking (a stage: t x d x layers; replicas: t x p x d x m; sequences of a micro-batch)");
    text += section_table(mesh_rows(found), style);
  }
  text += title(seconds ? fmt::format("Search ({})", format_seconds(Seconds(*seconds)))
                        : std::string("Search"));
  auto lines = mesh_sentences(found, s);
  if (auto kept = margin_sentence(s); !kept.empty()) lines.push_back(std::move(kept));
  if (!remark.empty()) lines.push_back(remark);
  text += bullets(lines, style);
  return text;
}

namespace {

std::vector<PlacedRank> placed_alike(const ParallelPlan& plan, const ClusterSpec& cluster) {
  const Mesh mesh(plan), experts = expert_mesh(plan);
  std::vector<PlacedRank> ranks;
  for (std::int64_t r = 0; r < mesh.size(); ++r) {
    const auto at = mesh.coordinates(r), of_experts = experts.coordinates(r);
    ranks.push_back({r, at.pp, at.tp, at.cp, at.dp, of_experts.ep, of_experts.tp, "",
                     r / cluster.devices_per_node, r % cluster.devices_per_node});
  }
  return ranks;
}

std::vector<PlacedRank> placed_by_stage(const ParallelPlan& plan, const ClusterSpec& cluster) {
  std::vector<PlacedRank> ranks;
  int stage = 0;
  for (const StageMesh& mesh : stage_meshes(plan, cluster)) {
    const std::int64_t node = group_of(cluster, mesh.group).devices_per_node;
    const std::int64_t t = mesh.plan.tp, c = mesh.plan.cp, e = mesh.plan.ep, et = mesh.plan.etp;
    for (std::int64_t i = 0; i < mesh.devices; ++i) {
      const std::int64_t device = mesh.first + i;
      ranks.push_back({static_cast<std::int64_t>(ranks.size()), stage, static_cast<int>(i % t),
                       static_cast<int>(i / t % c), static_cast<int>(i / (t * c)),
                       static_cast<int>(i / et % e), static_cast<int>(i % et), mesh.name,
                       device / node, device % node});
    }
    ++stage;
  }
  return ranks;
}

}  // namespace

std::vector<PlacedRank> placement(const ParallelPlan& plan, const ClusterSpec& cluster) {
  std::vector<PlacedRank> ranks;
  for (const Pipeline& pipeline : pipelines_of(plan, 0)) {
    const ClusterSpec& its = cluster_of(pipeline, cluster);
    for (PlacedRank rank : by_stage(pipeline.plan, its) ? placed_by_stage(pipeline.plan, its)
                                                        : placed_alike(pipeline.plan, its)) {
      rank.rank += pipeline.first_rank;
      if (pipeline.on) rank.group = pipeline.group;
      ranks.push_back(rank);
    }
  }
  return ranks;
}

}  // namespace planner
