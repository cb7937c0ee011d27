#include "costmodel/plan/replica_groups.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/plan/pipeline.hpp"
#include "costmodel/plan/plan_text.hpp"

namespace costmodel {

void join_replicas(ParallelPlan& plan) {
  const ReplicaGroup& first = plan.replica_groups.front();
  plan.tp = first.tp;
  plan.micro_batch = first.micro_batch;
  plan.recompute = first.recompute;
  plan.zero = first.zero;
  plan.pp = plan.dp = 0;
  bool tensor = false;
  for (const ReplicaGroup& group : plan.replica_groups) {
    plan.pp += group.pp;
    plan.dp += group.dp;
    tensor = tensor || group.tp > 1;
  }
  plan.sequence_parallel = plan.sequence_parallel && tensor;
}

namespace {

using GroupNames = std::vector<std::string>;

std::string list_of(GroupNames names) {
  for (std::string& name : names) name = shortened(name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// Checks that there is one entry per group, in the cluster's order.
bool check_groups(const ParallelPlan& p, const ClusterSpec& cluster, Rules& rules) {
  GroupNames has, listed;
  for (const ClusterSpec& group : cluster.groups) has.push_back(group.name);
  for (const ReplicaGroup& group : p.replica_groups) listed.push_back(group.group);
  const bool any = rules.require(
      !has.empty(), "replicas",
      [] { return std::string("the cluster has no groups whose replicas could differ"); },
      [] { return std::string("leave replicas out, or give cluster.groups"); });
  if (!any) return false;
  for (const std::string& name : listed) {
    const bool known = rules.require(
        std::ranges::count(has, name) > 0, "replicas",
        [&] { return fmt::format("the cluster has no group {}", quote(name)); },
        [&] { return "choose among " + list_of(has); });
    if (!known) return false;
  }
  for (const std::string& name : has) {
    const auto times = std::ranges::count(listed, name);
    const bool once = rules.require(
        times == 1, "replicas",
        [&] {
          return fmt::format("group {} of the cluster {}", quote(name),
                             times == 0 ? "holds no replicas" : "is listed more than once");
        },
        [&] { return "give one entry for each of " + list_of(has); });
    if (!once) return false;
  }
  return rules.require(
      listed == has, "replicas", [] { return std::string("the groups are in another order"); },
      [&] { return "list them as the cluster does: " + list_of(has); });
}

bool check_common(const ParallelPlan& p, Rules& rules) {
  const bool alone = rules.require(
      p.stages.empty() && p.stage_layers.empty(),
      p.stage_layers.empty() ? "stages" : "stage_layers",
      [] { return std::string("replicas of unequal shares have even stages"); },
      [] { return std::string("leave it out, or leave replicas out"); });
  const bool whole = rules.require(
      is_plain(p.schedule) && p.vpp == 1, "schedule",
      [] {
        return std::string(
            "replicas of unequal shares have one chunk a rank, and backwards that are not split");
      },
      [] { return std::string("set vpp: 1 and schedule: 1f1b, gpipe, serial or ideal"); });
  const bool laid_out = rules.require(
      p.rank_order == default_rank_order, "rank_order",
      [] {
        return std::string("replicas of unequal shares are laid out in the default order of axes");
      },
      [] { return std::string("leave rank_order out"); });
  return alone && whole && laid_out;
}

bool check_sizes(const ParallelPlan& p, const ClusterSpec& cluster, Rules& rules) {
  bool all_used = true;
  for (std::size_t g = 0; g < p.replica_groups.size(); ++g) {
    const ReplicaGroup& group = p.replica_groups[g];
    const std::int64_t has = cluster.groups[g].devices;
    all_used &= rules.require(
        group.devices(p.cp) == has, "replicas",
        [&] {
          return fmt::format("group {}: tp {} x pp {}{} x dp {} = {} devices, but it has {}",
                             quote(group.group), group.tp, group.pp,
                             p.cp > 1 ? fmt::format(" x cp {}", p.cp) : "", group.dp,
                             format_integer(group.devices(p.cp)), format_integer(has));
        },
        [&] {
          ReplicaGroup single = group;
          single.dp = 1;
          const std::int64_t one = single.devices(p.cp);
          if (has % one == 0) return fmt::format("set dp to {}, or leave it out", has / one);
          return fmt::format("choose tp x pp{} among the divisors of {}: {}",
                             p.cp > 1 ? " x cp" : "", has, divisors_text(has));
        });
  }
  return all_used;
}

bool check_shares(const ParallelPlan& p, const TrainingSpec& training, Rules& rules) {
  std::int64_t sum = 0;
  std::string terms;
  for (const ReplicaGroup& group : p.replica_groups) {
    sum += std::min(group.sequences(), beyond_any);
    terms += fmt::format("{}{} x {} x {}", terms.empty() ? "" : " + ", group.dp, group.micro_batch,
                         group.micro_batches);
  }
  return rules.require(
      sum == training.global_batch, "replicas",
      [&] {
        return fmt::format(
            "dp x micro_batch x micro_batches of the groups add up to {} = {}, and "
            "global_batch is {}",
            terms, format_integer(sum), format_integer(training.global_batch));
      },
      [] { return std::string("give the groups other micro_batches"); });
}

}  // namespace

void check_replicas(const ParallelPlan& p, const ModelSpec& model, const ClusterSpec& cluster,
                    const TrainingSpec& training, Rules& rules) {
  if (!check_groups(p, cluster, rules) || !check_common(p, rules) ||
      !check_sizes(p, cluster, rules) || !check_shares(p, training, rules))
    return;
  for (const Pipeline& pipeline : pipelines_of(p, training.global_batch)) {
    TrainingSpec own = training;
    own.global_batch = pipeline.sequences();
    const ClusterSpec& devices = cluster_of(pipeline, cluster);
    for (const Violation& fault : violations(pipeline.plan, model, devices, own)) {
      rules.require(
          false, "replicas",
          [&] { return fmt::format("group {}: {}", quote(pipeline.group), fault.reason); },
          [&] { return fault.remedy; });
    }
  }
}

std::string replicas_text(const ParallelPlan& plan) {
  std::string text;
  for (const ReplicaGroup& g : plan.replica_groups) {
    text += fmt::format("{}{}: t {} · p {} · d {} · b {} · m {} · recompute {} · ZeRO {}",
                        text.empty() ? "" : "; ", g.group, g.tp, g.pp, g.dp, g.micro_batch,
                        g.micro_batches, to_string(g.recompute), g.zero);
  }
  return text;
}

}  // namespace costmodel
