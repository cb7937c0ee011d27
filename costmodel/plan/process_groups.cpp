#include "costmodel/plan/process_groups.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "costmodel/base/error.hpp"
#include "costmodel/plan/mesh.hpp"

namespace costmodel {

namespace {

using Ranks = std::vector<std::int64_t>;
using Axes = std::vector<Axis>;

constexpr std::array grid_axes{Axis::tensor, Axis::data, Axis::pipeline, Axis::context,
                               Axis::expert};

// What all coordinates on `axes` add to a rank, the first axis fastest.
Ranks offsets(const Mesh& mesh, const Axes& axes) {
  Ranks all{0};
  for (const Axis axis : axes) {
    Ranks next;
    for (int k = 0; k < mesh.size(axis); ++k)
      for (const std::int64_t offset : all) next.push_back(offset + k * mesh.stride(axis));
    all = std::move(next);
  }
  return all;
}

// Those of `axes` that have more than one rank, in the order of the ranks.
Axes in_order(const Mesh& mesh, Axes axes) {
  std::erase_if(axes, [&](Axis axis) { return mesh.size(axis) == 1; });
  std::ranges::sort(axes, {}, [&](Axis axis) { return mesh.stride(axis); });
  return axes;
}

Axes others(const Mesh& mesh, const Axes& axes) {
  Axes rest;
  for (const Axis axis : grid_axes)
    if (std::ranges::find(axes, axis) == axes.end()) rest.push_back(axis);
  return in_order(mesh, rest);
}

std::int64_t apart_of(const Ranks& group) {
  if (group.size() < 2) return 1;
  const std::int64_t apart = group[1] - group[0];
  for (std::size_t i = 1; i < group.size(); ++i)
    if (group[i] - group[i - 1] != apart) return 0;
  return apart;
}

// The groups along `axes`, listed by the coordinates on `by`, the first of these fastest.
ProcessGroups listed(std::string_view kind, std::string_view use, const Mesh& mesh,
                     const Axes& axes, const Axes& by) {
  ProcessGroups all{kind, use, 1, {}};
  const Ranks members = offsets(mesh, in_order(mesh, axes));
  for (const std::int64_t first : offsets(mesh, by)) {
    Ranks& group = all.groups.emplace_back(members);
    for (std::int64_t& rank : group) rank += first;
  }
  all.apart = apart_of(all.groups.front());
  return all;
}

ProcessGroups along(std::string_view kind, std::string_view use, const Mesh& mesh,
                    const Axes& axes) {
  return listed(kind, use, mesh, axes, others(mesh, axes));
}

// Of each pipeline the ranks that hold a copy of something: its first, and with `last` its last.
ProcessGroups ends_of(std::string_view kind, std::string_view use, const ProcessGroups& pipelines,
                      bool last) {
  ProcessGroups all{kind, use, 1, {}};
  for (const Ranks& ranks : pipelines.groups) {
    Ranks& group = all.groups.emplace_back(Ranks{ranks.front()});
    if (last && ranks.size() > 1) group.push_back(ranks.back());
  }
  all.apart = apart_of(all.groups.front());
  return all;
}

// A grid whose axis `spare`, of one rank, becomes the groups of a hybrid sharding: right after the
// data-parallel one, which it divides.
Mesh hybrid_mesh(const Mesh& mesh, int groups, std::string order, Axis spare) {
  const std::string name = spare == Axis::expert ? "ep" : "cp";
  order = fmt::format("-{}-", order);
  order.erase(order.find("-" + name), 3);
  order.insert(order.find("dp") + 2, "-" + name);
  using enum Axis;
  AxisSizes sizes{mesh.size(tensor), mesh.size(data) / groups, mesh.size(pipeline),
                  mesh.size(context), mesh.size(expert)};
  (spare == expert ? sizes.ep : sizes.cp) = groups;
  return Mesh(sizes, order.substr(1, order.size() - 2));
}

std::vector<ProcessGroups> megatron_groups(const ParallelPlan& plan) {
  using enum Axis;
  const Mesh mesh(plan);
  std::vector<ProcessGroups> all{
      along("tensor", "activations of every layer", mesh, {tensor}),
      along("pipeline", "activations between stages", mesh, {pipeline}),
      along("data", "batches; gradients, where cp is 1", mesh, {data}),
      along("context", "keys and values", mesh, {context}),
      along("data-context",
            plan.dp_replicate > 1 ? "gradients, by two steps" : "gradients, ZeRO's shards", mesh,
            {data, context}),
      along("model", "gradient norm, a replica's ranks", mesh, {tensor, pipeline})};
  all.push_back(
      ends_of("embedding", "gradients of word embeddings, where they are tied", all[1], true));
  all.push_back(ends_of("position-embedding", "its gradients", all[1], false));
  if (plan.dp_replicate > 1) {
    const Mesh hybrid = hybrid_mesh(mesh, plan.dp_replicate, plan.rank_order, expert);
    all.push_back(along("shard", "ZeRO's shards of a group (HSDP)", hybrid, {data, context}));
    all.push_back(along("replicate", "gradients between groups", hybrid, {expert}));
  }
  if (plan.ep == 1 && plan.etp == plan.tp) return all;
  const Mesh experts = expert_mesh(plan);
  all.push_back(along("expert", "tokens to experts and back", experts, {expert}));
  all.push_back(along("expert-tensor", "activations inside an expert", experts, {tensor}));
  all.push_back(along("expert-data", "gradients of experts", experts, {data}));
  if (plan.dp_replicate > 1) {
    const Mesh hybrid = hybrid_mesh(experts, plan.dp_replicate, plan.rank_order, context);
    all.push_back(along("expert-shard", "ZeRO's shards of experts in a group", hybrid, {data}));
    all.push_back(
        along("expert-replicate", "gradients of experts between groups", hybrid, {context}));
  }
  return all;
}

std::vector<ProcessGroups> vllm_groups(const ParallelPlan& plan) {
  using enum Axis;
  const Mesh mesh({plan.tp, plan.dp, plan.pp, plan.cp}, "tp-cp-ep-pp-dp");
  std::vector<ProcessGroups> all{
      along("tensor", "activations of every layer", mesh, {tensor}),
      listed("pipeline", "activations between stages", mesh, {pipeline}, {context, tensor, data}),
      listed("data", "requests; that all replicas step together", mesh, {data},
             {context, pipeline, tensor}),
      along("context", "keys and values of a prefill", mesh, {context})};
  if (plan.ep > 1) {
    all.push_back(along("expert", "tokens to experts and back", mesh, {tensor, context, data}));
  }
  return all;
}

GroupFault megatron_fault(const ParallelPlan& p) {
  const std::int64_t ranks = std::int64_t{p.tp} * p.cp * p.dp, own = std::int64_t{p.ep} * p.etp;
  if (ranks % own != 0) {
    return {fmt::format("ep {} x etp {} = {} does not divide the {} ranks of a stage, tp x cp x dp",
                        p.ep, p.etp, own, ranks),
            "choose ep x etp among its divisors"};
  }
  if (p.pp == 1 || Mesh(p).stride(Axis::pipeline) == expert_mesh(p).stride(Axis::pipeline))
    return {};
  return {fmt::format("the order {} lays out the pipelines of experts otherwise than others'",
                      p.rank_order),
          "end it in pp, or make ep x etp equal tp x cp"};
}

GroupFault vllm_fault(const ParallelPlan& p) {
  const std::int64_t ranks = std::int64_t{p.tp} * p.cp * p.dp;
  if (p.ep != 1 && p.ep != ranks) {
    return {fmt::format("vLLM's expert groups are all {} ranks of a stage, not ep {}", ranks, p.ep),
            fmt::format("choose ep {} (--enable-expert-parallel) or 1", ranks)};
  }
  return {};
}

}  // namespace

GroupFault group_fault(const ParallelPlan& plan, RankLayout layout) {
  return layout == RankLayout::megatron ? megatron_fault(plan) : vllm_fault(plan);
}

std::vector<ProcessGroups> process_groups(const ParallelPlan& plan, RankLayout layout) {
  SHARDPLAN_CHECK(plan.even() && group_fault(plan, layout).reason.empty());
  return layout == RankLayout::megatron ? megatron_groups(plan) : vllm_groups(plan);
}

}  // namespace costmodel
