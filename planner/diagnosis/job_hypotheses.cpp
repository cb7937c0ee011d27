#include "planner/diagnosis/job_hypotheses.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/plan/mesh.hpp"

namespace planner {

using namespace costmodel;
using Variants = std::vector<Variant>;

namespace {

Variants unchanged(const Suspect& s) { return {{"it runs as configured", s.job}}; }

// All rates of a device, so many times slower.
void slow_down(DeviceSpec& device, double times) {
  for (auto& peak : device.peak) peak *= 1 / times;
  device.vector_peak *= 1 / times;
  device.memory_bandwidth *= 1 / times;
}

constexpr std::array slow_times{1.1, 1.2, 1.35, 1.6, 2.0};

// In a synchronous job all wait for the slowest node, so the job is priced as if all were so slow;
// only the timers of the other ranks tell the difference.
Variants slower(const Suspect& s, bool one_node, const char* told) {
  Variants list;
  if (one_node && s.job.cluster.devices <= s.job.cluster.devices_per_node) return list;
  for (const double times : slow_times) {
    Variant& v = list.emplace_back(Variant{fmt::format(fmt::runtime(told), times), s.job});
    slow_down(v.job.cluster.device, times);
    for (auto& group : v.job.cluster.groups) slow_down(group.device, times);
    v.job.one_node = one_node;
  }
  return list;
}

Variants slow_node(const Suspect& s) {
  return slower(s, true, "one node computes about {} times slower than the others");
}

Variants slow_devices(const Suspect& s) {
  return slower(s, false, "all devices compute about {} times slower");
}

Variants micro_batch(const Suspect& s) {
  Variants list;
  const auto now = s.job.plan.micro_batch;
  for (const auto other : {now * 2, now / 2, now * 4, now / 4}) {
    if (other < 1 || !s.job.plan.even() || (other == now / 2 && now % 2 != 0)) continue;
    Variant& v = list.emplace_back(
        Variant{fmt::format("micro-batches of {} instead of {}", other, now), s.job});
    v.job.plan.micro_batch = other;
  }
  return list;
}

Variants global_batch(const Suspect& s) {
  Variants list;
  const auto now = s.job.training.global_batch;
  for (const auto other : {now * 2, now * 4, now / 2}) {
    Variant& v = list.emplace_back(
        Variant{fmt::format("{} sequences an iteration instead of {}: another accumulation count",
                            format_integer(other), format_integer(now)),
                s.job});
    v.job.training.global_batch = other;
  }
  return list;
}

Variants tp_across_nodes(const Suspect& s) {
  Variants list;
  const Job& now = s.job;
  if (now.plan.tp == 1 || !now.plan.even()) return list;
  const auto outermost = [&](const ParallelPlan& plan) {
    return Mesh(plan).layout(costmodel::Axis::tensor, now.cluster).outermost();
  };
  for (const char* order : {"dp-tp-cp-ep-pp", "pp-tp-cp-ep-dp"}) {
    Variant v{fmt::format("tensor-parallel groups span nodes: ranks in the order {}", order), now};
    v.job.plan.rank_order = order;
    if (outermost(v.job.plan) > outermost(now.plan)) list.push_back(std::move(v));
  }
  return list;
}

// One variant, with a switch of the stack off that is on.
Variants off(const Suspect& s, bool Overlap::*which, const char* told) {
  if (!(s.job.training.overlap.*which)) return {};
  Variant v{told, s.job};
  v.job.training.overlap.*which = false;
  return {std::move(v)};
}

Variants no_gradient_overlap(const Suspect& s) {
  if (s.job.plan.replicas() == 1) return {};
  return off(s, &Overlap::overlap_grad_reduce,
             "gradients are reduced after backward, not beside it");
}

Variants no_parameter_overlap(const Suspect& s) {
  if (s.job.plan.replicas() == 1 || s.job.plan.zero == 0) return {};
  return off(s, &Overlap::overlap_param_gather,
             "parameters are gathered after the optimizer, not beside forward");
}

Variants no_tp_overlap(const Suspect& s) {
  if (s.job.plan.tp == 1) return {};
  Variants list =
      off(s, &Overlap::tp_comm_overlap, "tensor-parallel collectives are not overlapped");
  for (auto& v : off(s, &Overlap::async_tp, "asynchronous tensor parallelism is off"))
    list.push_back(std::move(v));
  return list;
}

Variants recomputation(const Suspect& s) {
  Variants list;
  const auto now = s.job.plan.recompute.granularity;
  for (const auto kind : {Recomputation::full, Recomputation::selective}) {
    if (kind <= now || !s.job.plan.even()) continue;
    if (kind == Recomputation::selective && !s.job.training.stack.offers.selective_recompute)
      continue;
    Variant& v =
        list.emplace_back(Variant{fmt::format("{} recomputation is on instead of {}",
                                              recomputation_names[static_cast<std::size_t>(kind)],
                                              recomputation_names[static_cast<std::size_t>(now)]),
                                  s.job});
    v.job.plan.recompute = {kind};
  }
  return list;
}

Variants eager_attention(const Suspect& s) {
  if (s.job.training.stack.kernels.attention == AttentionKernel::unfused) return {};
  Variant v{"attention runs as separate kernels, not as FlashAttention", s.job};
  v.job.training.stack.kernels.attention = AttentionKernel::unfused;
  return {std::move(v)};
}

Variants not_narrow(const Suspect& s) {
  if (!is_narrow(s.job.training.precision)) return {};
  Variant v{fmt::format("products run in bf16, not in {}", to_string(s.job.training.precision)),
            s.job};
  v.job.training.precision = Precision::bf16;
  v.job.training.narrow_attention = false;
  return {std::move(v)};
}

void limit(Tier& tier, double share) {
  tier.bandwidth *= share;
  tier.single *= share;
  for (auto& group : tier.groups) group.bandwidth *= share;
  tier.measured.clear();  // of a network that is well
}

Variants slow_network(const Suspect& s) {
  Variants list;
  if (s.job.cluster.tiers.size() < 2) return list;
  for (const double share : {0.5, 0.25, 0.125}) {
    Variant& v = list.emplace_back(Variant{
        fmt::format("the network between nodes gives {:g} % of its rate", 100 * share), s.job});
    for (std::size_t i = 1; i < v.job.cluster.tiers.size(); ++i)
      limit(v.job.cluster.tiers[i], share);
  }
  return list;
}

Variants no_nvlink(const Suspect& s) {
  const auto host = s.job.cluster.device.host_bandwidth;
  if (s.job.cluster.tiers.empty() || host.value <= 0) return {};
  const double share = host.value / s.job.cluster.tiers.front().bandwidth.value;
  if (share > 0.5) return {};
  Variant v{fmt::format("devices of a node talk over PCIe ({}), not over their own links",
                        format_bandwidth(host)),
            s.job};
  limit(v.job.cluster.tiers.front(), share);
  return {std::move(v)};
}

Variants data_stall(const Suspect& s) {
  Variants list;
  Variant now_and_then{"some iterations wait for data", s.job};
  now_and_then.job.slow_iterations = 0.1;
  list.push_back(std::move(now_and_then));
  for (const double share : {0.1, 0.25, 0.5, 1.0}) {
    Variant& v = list.emplace_back(Variant{"", s.job});
    v.job.data = s.iteration * share;
    v.job.training.stack.host.iteration += v.job.data;
    v.told = fmt::format("each iteration waits about {} for data", format_seconds(v.job.data));
  }
  return list;
}

Variants host_bound(const Suspect& s) {
  Variants list;
  for (const double times : {2.0, 4.0, 8.0}) {
    Variant& v = list.emplace_back(
        Variant{fmt::format("the host takes {:g} times as long to launch a kernel", times), s.job});
    v.job.cluster.device.kernel_launch *= times;
    v.job.cluster.device.host_call *= times;
    v.job.training.stack.host.kernel_launch *= times;
    v.job.training.stack.host.micro_batch *= times;
  }
  return list;
}

Variants not_compiled(const Suspect& s) {
  Variants list = off(s, &Overlap::compile, "the model is not compiled");
  for (auto& v : off(s, &Overlap::cuda_graph, "launches are not replayed from CUDA graphs"))
    list.push_back(std::move(v));
  return list;
}

constexpr auto known = std::to_array<Hypothesis>(
    {{"as-configured", 0.25,
      "most jobs run as configured, but who asks suspects that this one does not", "",
      "Nothing to repair; what would help stands below.", unchanged},
     {"slow-node", 0.1,
      "slow machines are a usual finding in jobs of many nodes (MegaScale, arXiv:2402.15627)", "",
      "Find the node: compare a product's rate and clocks node by node (DCGM, nvidia-smi -q -d "
      "PERFORMANCE), then drain it.",
      slow_node},
     {"slow-devices", 0.03, "a power or clock limit for all is rare, and seen when it is set", "",
      "Look at clocks and power limits of all devices (nvidia-smi -q -d CLOCK,POWER).",
      slow_devices},
     {"micro-batch", 0.06, "set in another place than the file that was read", "plan.micro_batch",
      "Set the micro-batch to the scenario's.", micro_batch},
     {"global-batch", 0.04, "as the micro-batch; most logs say it", "training.global_batch",
      "Set the accumulation steps so that an iteration has the scenario's sequences.",
      global_batch},
     {"tp-across-nodes", 0.04, "a launcher that orders ranks otherwise; rare, and dear", "",
      "Order ranks so that a tensor-parallel group is on one node: hostfile, ranks a node, the "
      "order "
      "of mesh axes.",
      tp_across_nodes},
     {"no-gradient-overlap", 0.05, "off by default in several frameworks",
      "training.overlap.overlap_grad_reduce",
      "Switch on the overlap of the gradient reduction (--overlap-grad-reduce; overlap_comm).",
      no_gradient_overlap},
     {"no-parameter-overlap", 0.04, "off by default in several frameworks",
      "training.overlap.overlap_param_gather",
      "Switch on the overlap of the parameter gather (--overlap-param-gather).",
      no_parameter_overlap},
     {"no-tp-overlap", 0.04, "needs a build and a switch of its own",
      "training.overlap.tp_comm_overlap",
      "Switch on the overlap of tensor-parallel communication (--tp-comm-overlap; async_tp).",
      no_tp_overlap},
     {"recomputation", 0.07, "often left on from a run that needed the memory", "plan.recompute",
      "Switch recomputation off, or to what the scenario says, if memory allows it.",
      recomputation},
     {"eager-attention", 0.04, "frameworks fall back silently for masks and head sizes", "",
      "Look for the attention backend in the log, and for what makes it fall back "
      "(NVTE_DEBUG=1; masks, dropout, head size).",
      eager_attention},
     {"not-narrow", 0.06, "recipes fall back silently where shapes or layers are left out", "",
      "See whether fp8 is on and which layers run in it (fp8 recipe, filters).", not_narrow},
     {"slow-network", 0.07, "ports that are down, no GPUDirect, a wrong interface: common", "",
      "Measure it: nccl-tests between two nodes; NCCL_DEBUG=INFO tells the interface and GDRDMA.",
      slow_network},
     {"no-nvlink", 0.02, "rare: peer access off, or a container that hides the links", "",
      "Look at nvidia-smi topo -m, and whether NCCL_DEBUG=INFO tells P2P or SHM within a node.",
      no_nvlink},
     {"data-stall", 0.07, "common: too few workers, cold or shared storage", "",
      "Time an iteration with synthetic data; raise the loader's workers and prefetch.",
      data_stall},
     {"host-bound", 0.05, "common with small kernels: a busy or slow host, wrong NUMA pinning", "",
      "Look at CPU load and pinning; replay launches from CUDA graphs; larger micro-batches.",
      host_bound},
     {"not-compiled", 0.03, "falls back silently at graph breaks", "",
      "Look for recompilation and graph breaks in the log (TORCH_LOGS=graph_breaks,recompiles).",
      not_compiled}});

}  // namespace

std::span<const Hypothesis> hypotheses() { return known; }

}  // namespace planner
