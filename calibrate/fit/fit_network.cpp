#include "calibrate/fit/fit_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "costmodel/cost/collective.hpp"
#include "costmodel/plan/mesh.hpp"

namespace calibrate {

using namespace costmodel;

namespace {

struct Ranks {
  int ranks;
  int nodes;  // 0: not stated
};

std::optional<Ranks> ranks_of(const Measurement& m) {
  if (const auto* run = std::get_if<CollectiveRun>(&m.what)) return Ranks{run->ranks, run->nodes};
  if (const auto* run = std::get_if<ExpertRun>(&m.what)) return Ranks{run->ranks, run->nodes};
  return std::nullopt;
}

GroupLayout empty_layout(int ranks, const ClusterSpec& cluster) {
  GroupLayout layout;
  layout.size = ranks;
  layout.tiers = cluster.tiers.size();
  layout.fan.fill(1);
  return layout;
}

// Ranks that fill units one after the other, within what the outermost tier connects.
std::optional<GroupLayout> filled(int ranks, const ClusterSpec& cluster) {
  const auto& tiers = cluster.tiers;
  if (ranks > tiers[tiers.size() > 1 ? tiers.size() - 2 : 0].devices) return std::nullopt;
  GroupLayout layout = empty_layout(ranks, cluster);
  std::int64_t units = ranks, inside = 1;
  for (std::size_t i = 0; i < tiers.size() && units > 1; ++i) {
    layout.fan[i] = static_cast<int>(std::min(units, tiers[i].devices / inside));
    units = ceil_div(units, layout.fan[i]);
    inside = tiers[i].devices;
  }
  return layout;
}

// The distribution of the run's ranks over the tiers; none when the cluster has no such place.
std::optional<GroupLayout> layout_in(const Ranks& run, const ClusterSpec& cluster) {
  if (run.nodes == 0) return filled(run.ranks, cluster);
  const auto unit = cluster.tiers.front().devices;
  if (run.ranks % run.nodes != 0) return std::nullopt;
  const int in_node = run.ranks / run.nodes;
  const bool whole_units = in_node == unit || cluster.devices_per_node < unit;
  if (run.nodes > 1 && whole_units) return layout_of(run.ranks, 1, cluster);
  if (in_node > unit || (run.nodes > 1 && cluster.tiers.size() != 2)) return std::nullopt;
  GroupLayout layout = empty_layout(run.ranks, cluster);
  layout.fan[0] = in_node;
  if (run.nodes > 1) layout.fan[1] = run.nodes;
  return layout;
}

// The cluster with room for the largest run, without measured times.
ClusterSpec large_enough(const ClusterSpec& base, const std::vector<Measurement>& measurements) {
  std::int64_t most = base.devices;
  for (const auto& m : measurements) {
    if (const auto run = ranks_of(m)) most = std::max<std::int64_t>(most, run->ranks);
  }
  ClusterSpec cluster = most == base.devices ? base : resized(base, most);
  for (Tier& tier : cluster.tiers) tier.measured.clear();  // they would hide the formulas
  return cluster;
}

ClusterSpec with_constants(ClusterSpec cluster, std::size_t tier,
                           const std::vector<double>& values) {
  Tier& t = cluster.tiers[tier];
  t.efficiency = values[0];
  t.latency = Seconds(values[1]);
  t.fixed = Seconds(values[2]);
  return cluster;
}

FitTask task_of(const ClusterSpec& cluster, std::size_t tier, std::vector<Measurement> points) {
  const Tier& t = cluster.tiers[tier];
  const auto named = [&](const char* key) { return fmt::format("tiers.{}.{}", t.name, key); };
  FitTask task;
  task.what = fmt::format("collectives over {}", t.name);
  task.knobs = {{named("efficiency"), t.efficiency, 1e-3, 1, true},
                {named("latency_s"), t.latency.value, 0, 1e-2},
                {named("fixed_s"), t.fixed.value, 0, 1e-1}};
  task.points = std::move(points);
  task.model = [cluster, tier](const std::vector<double>& values, const Measurement& m) {
    const auto& run = std::get<CollectiveRun>(m.what);
    const ClusterSpec tried = with_constants(cluster, tier, values);
    return collective_time(run.kind, run.message, *layout_in(*ranks_of(m), tried), tried);
  };
  return task;
}

FitTask exchanges_of(const ClusterSpec& cluster, std::size_t tier, double efficiency,
                     std::vector<Measurement> points) {
  FitTask task;
  task.what = fmt::format("dispatch and combine over {}", cluster.tiers[tier].name);
  task.knobs = {{"experts.exchange_efficiency", efficiency, 1e-2, 2, true, {}, false}};
  task.points = std::move(points);
  task.model = [cluster](const std::vector<double>& values, const Measurement& m) {
    const auto& run = std::get<ExpertRun>(m.what);
    auto routing = run.routing;
    routing.efficiency = values[0];
    const GroupLayout layout = *layout_in(*ranks_of(m), cluster);
    return expert_exchange(run.message, routing, layout, cluster, run.routed).time;
  };
  return task;
}

std::string no_place(const Ranks& run) {
  if (run.nodes == 0) return fmt::format("{} ranks have no place in one node", run.ranks);
  return fmt::format("{} ranks on {} nodes have no place in the cluster", run.ranks, run.nodes);
}

using ByTier = std::vector<std::vector<Measurement>>;

// The measurements of a kind by the outermost tier of each.
template <class Run>
ByTier by_tier(const ClusterSpec& cluster, const std::vector<Measurement>& measurements,
               std::vector<Unused>& unused) {
  ByTier found(cluster.tiers.size());
  for (const auto& m : measurements) {
    if (!std::holds_alternative<Run>(m.what)) continue;
    const Ranks run = *ranks_of(m);
    const auto layout = layout_in(run, cluster);
    if (!layout) {
      unused.push_back({m.id, no_place(run), m.device});
    } else {
      found[static_cast<std::size_t>(layout->outermost())].push_back(m);
    }
  }
  return found;
}

}  // namespace

std::vector<FittedGroup> fit_network(const ClusterSpec& base,
                                     const std::vector<Measurement>& measurements,
                                     std::vector<Unused>& unused, double exchange_efficiency) {
  const ClusterSpec shipped = large_enough(base, measurements);
  ClusterSpec cluster = shipped;
  std::vector<FittedGroup> groups;
  const auto collectives = by_tier<CollectiveRun>(shipped, measurements, unused);
  for (std::size_t tier = 0; tier < collectives.size(); ++tier) {
    if (collectives[tier].empty()) continue;
    groups.push_back(
        fit(task_of(cluster, tier, collectives[tier]), task_of(shipped, tier, collectives[tier])));
    cluster = with_constants(cluster, tier, groups.back().values());
  }
  const auto exchanges = by_tier<ExpertRun>(shipped, measurements, unused);
  for (std::size_t tier = 0; tier < exchanges.size(); ++tier) {
    if (exchanges[tier].empty()) continue;
    groups.push_back(fit(exchanges_of(shipped, tier, exchange_efficiency, exchanges[tier])));
  }
  return groups;
}

}  // namespace calibrate
