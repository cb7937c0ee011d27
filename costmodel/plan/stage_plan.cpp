#include "costmodel/plan/stage_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"

namespace costmodel {

ParallelPlan stage_plan(const ParallelPlan& plan, int stage) {
  const StagePlan written = plan.stage(stage);
  ParallelPlan own = plan;
  own.stages.clear();
  own.replica_groups.clear();
  own.tp = written.tp;
  own.dp = written.dp;
  own.cp = written.cp;
  own.cp_comm = written.cp_comm;
  own.ep = written.ep;
  own.etp = written.etp;
  own.micro_batch = plan.dp * plan.micro_batch / written.dp;
  own.recompute = written.recompute;
  own.zero = written.zero;
  own.sequence_parallel = plan.sequence_parallel && written.tp > 1;
  return own;
}

const char* stage_key(const ParallelPlan& plan, const char* alike) {
  return plan.even() ? alike : "stages";
}

void blame_stage(const ParallelPlan& plan, int stage, Violation& fault) {
  if (plan.even()) return;
  fault.key = "stages";
  fault.reason = fmt::format("stage {}: {}", stage, fault.reason);
}

namespace {

struct Submesh {
  int group = 0;
  std::int64_t first = 0, devices = 0;
  std::int64_t left = 0;  // in the group before this stage took its part
};

// The index of a group by name; -1: none.
int group_named(const std::string& name, const ClusterSpec& cluster) {
  for (std::size_t g = 0; g < cluster.groups.size(); ++g)
    if (cluster.groups[g].name == name) return static_cast<int>(g);
  return -1;
}

// Assigns groups in pipeline order; a stage without a group name goes to the first group with free
// devices.
std::vector<Submesh> dealt_out(const ParallelPlan& plan, const ClusterSpec& cluster) {
  std::vector<std::int64_t> left;
  for (const ClusterSpec& group : groups_of(cluster)) left.push_back(group.devices);
  const auto groups = static_cast<int>(left.size());
  std::vector<Submesh> all;
  int next = 0;
  for (int k = 0; k < plan.pp; ++k) {
    const StagePlan stage = plan.stage(k);
    while (next + 1 < groups && left[static_cast<std::size_t>(next)] <= 0) ++next;
    const int group = stage.group.empty() ? next : std::max(0, group_named(stage.group, cluster));
    std::int64_t& rest = left[static_cast<std::size_t>(group)];
    all.push_back({group, 0, stage.devices(), rest});
    rest -= all.back().devices;
  }
  return all;
}

// Places the largest first, so that no submesh straddles nodes unnecessarily.
void pack(std::vector<Submesh>& all) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return all[a].devices > all[b].devices; });
  std::vector<std::int64_t> next(all.size() + 1, 0);
  int groups = 0;
  for (const Submesh& s : all) groups = std::max(groups, s.group + 1);
  next.assign(static_cast<std::size_t>(groups), 0);
  for (const std::size_t k : order) {
    std::int64_t& from = next[static_cast<std::size_t>(all[k].group)];
    all[k].first = from;
    from += all[k].devices;
  }
}

// A submesh is an equal part of a node or complete nodes, because it is priced as one of many
// identical ones.
bool lies_well(const Submesh& s, const ClusterSpec& cluster) {
  const ClusterSpec& own = group_of(cluster, s.group);
  const std::int64_t node = own.devices_per_node;
  if (own.devices <= node) return true;
  return s.first % std::min(s.devices, node) == 0 &&
         (node % s.devices == 0 || s.devices % node == 0);
}

// "tp x dp", or with context parallelism "tp x dp x cp".
std::string product_text(const ParallelPlan& p) {
  bool context = false;
  for (int k = 0; k < p.different_stages(); ++k) context = context || p.stage(k).cp > 1;
  return context ? "tp x dp x cp" : "tp x dp";
}

std::string group_names(const ClusterSpec& cluster) {
  std::vector<std::string> names;
  for (const ClusterSpec& group : cluster.groups) names.push_back(shortened(group.name));
  return fmt::format("{}", fmt::join(names, ", "));
}

bool check_shape(const ParallelPlan& p, Rules& rules) {
  const auto listed = static_cast<int>(p.stages.size());
  const bool complete = rules.require(
      listed == 0 || listed == p.pp, "stages",
      [&] { return fmt::format("stages lists {}, pp is {}", listed, p.pp); },
      [] { return std::string("leave pp out, or list one entry for each stage"); });
  rules.require(
      is_plain(p.schedule) && p.vpp == 1, "schedule",
      [] {
        return std::string(
            "stages that differ have one chunk a rank, and backwards that are not split");
      },
      [] { return std::string("set vpp: 1 and schedule: 1f1b, gpipe, serial or ideal"); });
  rules.require(
      p.rank_order == default_rank_order, "rank_order",
      [] { return std::string("stages that differ are laid out in the default order of axes"); },
      [] { return std::string("leave rank_order out"); });
  bool divides = true;
  for (std::size_t k = 0; k < p.stages.size(); ++k) {
    const std::int64_t rows = p.dp * p.micro_batch;
    divides &= rules.require(
        rows % p.stages[k].dp == 0, "stages",
        [&] {
          return fmt::format(
              "stage {}: dp {} does not divide the {} sequences of dp {} x "
              "micro_batch {}",
              k, p.stages[k].dp, rows, p.dp, p.micro_batch);
        },
        [] { return std::string("choose another dp there, or a larger micro_batch"); });
  }
  return complete && divides;
}

}  // namespace

std::vector<StageMesh> stage_meshes(const ParallelPlan& plan, const ClusterSpec& cluster) {
  std::vector<Submesh> all = dealt_out(plan, cluster);
  pack(all);
  std::vector<StageMesh> meshes;
  for (int k = 0; k < plan.pp; ++k) {
    const Submesh& s = all[static_cast<std::size_t>(k)];
    meshes.push_back(
        {stage_plan(plan, k), s.group, group_name(cluster, s.group), s.first, s.devices});
  }
  return meshes;
}

bool check_submeshes(const ParallelPlan& p, const ClusterSpec& cluster, Rules& rules) {
  if (!check_shape(p, rules) || rules.stop()) return false;
  std::int64_t sum = 0;
  for (int k = 0; k < p.pp && sum < beyond_any; ++k) sum += p.stage(k).devices();
  const bool all_used = rules.require(
      sum == cluster.devices, stage_key(p, "dp"),
      [&] {
        return fmt::format("the stages' {} add up to {} devices, but the cluster has {}",
                           product_text(p), format_integer(sum), format_integer(cluster.devices));
      },
      [&] {
        return fmt::format("make them add up, or set cluster.devices{} to fit",
                           group_names(cluster).empty() ? "" : " of its groups");
      });
  if (!all_used) return false;
  for (std::size_t k = 0; k < p.stages.size(); ++k) {
    const std::string& name = p.stages[k].group;
    const bool known = rules.require(
        name.empty() || group_named(name, cluster) >= 0, "stages",
        [&] { return fmt::format("stage {}: the cluster has no group {}", k, quote(name)); },
        [&] {
          const std::string names = group_names(cluster);
          return names.empty() ? "leave group out" : "choose among " + names;
        });
    if (!known) return false;
  }
  std::vector<Submesh> all = dealt_out(p, cluster);
  for (std::size_t k = 0; k < all.size(); ++k) {
    const Submesh& s = all[k];
    const bool whole = rules.require(
        s.devices <= s.left, stage_key(p, "pp"),
        [&] {
          return fmt::format(
              "stage {} takes {} devices, group {} has {} left: a stage lies on "
              "one kind of device",
              k, s.devices, quote(group_of(cluster, s.group).name),
              std::max<std::int64_t>(0, s.left));
        },
        [&] {
          return p.even() ? fmt::format(
                                "choose pp so that a stage's {} divides every group, or give "
                                "plan.stages",
                                product_text(p))
                          : fmt::format("choose another {} or group for it; the groups: {}",
                                        product_text(p), group_names(cluster));
        });
    if (!whole) return false;
  }
  pack(all);
  for (std::size_t k = 0; k < all.size(); ++k) {
    rules.require(
        lies_well(all[k], cluster), "stages",
        [&] {
          return fmt::format("stage {} of {} devices does not divide nodes of {}", k,
                             all[k].devices, group_of(cluster, all[k].group).devices_per_node);
        },
        [] { return std::string("give it a part of a node that divides it, or whole nodes"); });
  }
  return true;
}

}  // namespace costmodel
