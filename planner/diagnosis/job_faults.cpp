#include "planner/diagnosis/job_faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/plan/mesh.hpp"

namespace planner::faults {

using namespace costmodel;

namespace {

// All rates of a device, so many times slower.
void slow_down(DeviceSpec& device, double times) {
  for (auto& peak : device.peak) peak *= 1 / times;
  device.vector_peak *= 1 / times;
  device.memory_bandwidth *= 1 / times;
}

constexpr std::array slow_times{1.1, 1.2, 1.35, 1.6, 2.0, 2.7, 3.5};

// The job with a fault of one size; `form` has a place for it.
Variant& sized(Variants& list, const Job& job, const char* form, double size) {
  return list.emplace_back(Variant{fmt::format(fmt::runtime(form), size), job, size, form});
}

// In a synchronous job all wait for the slowest node, so the job is priced as if all were so slow;
// only the timers of the other ranks tell the difference.

Variants slower(const Suspect& s, bool one_node, const char* form) {
  Variants list;
  if (one_node && s.job.cluster.devices < 2) return list;
  for (const double times : slow_times) {
    Variant& v = sized(list, s.job, form, times);
    slow_down(v.job.cluster.device, times);
    for (auto& group : v.job.cluster.groups) slow_down(group.device, times);
    v.job.one_node = one_node;
  }
  return list;
}

// One variant, with a switch of the stack off that is on.
Variants off(const Suspect& s, bool Overlap::*which, const char* text) {
  if (!(s.job.training.overlap.*which)) return {};
  Variant v{text, s.job};
  v.job.training.overlap.*which = false;
  return {std::move(v)};
}

void limit(Tier& tier, double share) {
  tier.bandwidth *= share;
  tier.single *= share;
  for (auto& group : tier.groups) group.bandwidth *= share;
  tier.measured.clear();  // of a network that is well
}

// An iteration is so many times longer by a wait that no part of the model knows.
Variants waiting(const Suspect& s, const char* form, bool for_data) {
  Variants list;
  for (const double share : {0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0}) {
    if (!for_data && share > 4) continue;  // retries take less than that
    const Seconds wait = s.iteration * share;
    Variant& v = sized(list, s.job, form, wait.value);
    if (for_data) v.job.data = wait;
    v.job.training.stack.host.iteration += wait;
  }
  return list;
}

// Products in fp32 or, where a device has it, in TF32, which is half of its 16-bit rate; attention
// in the kernels of the job or, as fused ones take 16 bits, in separate ones.

// Without a capacity no row is dropped and the fullest rank sets the pace; with one, rows are
// padded to it.

// The job as it is, of which the pipeline leaves so much idle that this is the finding.

}  // namespace

Variants unchanged(const Suspect& s) { return {{"it runs as configured", s.job}}; }

Variants slow_node(const Suspect& s) {
  return slower(s, true,
                s.job.cluster.devices > s.job.cluster.devices_per_node
                    ? "one node computes about {:.3g} times slower than the others"
                    : "one device computes about {:.3g} times slower than the others");
}

Variants slow_devices(const Suspect& s) {
  return slower(s, false, "all devices compute about {:.3g} times slower");
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

Variants slow_network(const Suspect& s) {
  Variants list;
  if (s.job.cluster.tiers.size() < 2) return list;
  for (const double share : {0.7, 0.5, 0.25, 0.125, 0.06, 0.03, 0.015, 0.008}) {
    Variant& v = sized(list, s.job, "the network between nodes gives about {:.2g} % of its rate",
                       100 * share);
    for (std::size_t i = 1; i < v.job.cluster.tiers.size(); ++i)
      limit(v.job.cluster.tiers[i], share);
  }
  return list;
}

Variants no_nvlink(const Suspect& s) {
  const auto host = s.job.cluster.device.host_bandwidth;
  Variants list;
  if (s.job.cluster.tiers.empty() || s.job.cluster.devices_per_node < 2) return list;
  const Tier& inner = s.job.cluster.tiers.front();
  // Over PCIe, or through host memory, which two copies and other devices share.
  const double pcie = host.value > 0 ? std::min(1.0, host.value / inner.bandwidth.value) : 0.5;
  for (const double part : {1.0, 0.5, 0.2, 0.05, 0.02}) {
    const double share = pcie * part;
    constexpr double own_links = 0.6;  // above it devices have none but PCIe's
    if (share > own_links || (pcie < own_links && part < 0.2)) continue;
    Variant& v =
        sized(list, s.job,
              "devices of a node talk over PCIe or host memory, at about {:.2g} % of their links",
              100 * share);
    limit(v.job.cluster.tiers.front(), share);
  }
  return list;
}

Variants data_stall(const Suspect& s) {
  Variants list = waiting(s, "each iteration waits about {:.3g} s for data", true);
  Variant now_and_then{"some iterations wait for data", s.job};
  now_and_then.job.slow_iterations = often_slow;
  list.insert(list.begin(), std::move(now_and_then));
  return list;
}

Variants host_bound(const Suspect& s) {
  Variants list;
  for (const double times : {2.0, 4.0, 8.0, 16.0, 32.0, 100.0}) {
    Variant& v =
        sized(list, s.job, "the host takes about {:.2g} times as long to launch a kernel", times);
    v.job.cluster.device.kernel_launch *= times;
    v.job.cluster.device.host_call *= times;
    v.job.training.stack.host.kernel_launch *= times;
    v.job.training.stack.host.micro_batch *= times;
  }
  return list;
}

Variants allocator_retries(const Suspect& s) {
  Variants list = waiting(
      s, "the allocator gives memory back and asks again, about {:.3g} s an iteration", false);
  Variant now_and_then{"some iterations wait for the allocator", s.job};
  now_and_then.job.slow_iterations = often_slow;
  list.push_back(std::move(now_and_then));
  return list;
}

Variants checkpoint_writing(const Suspect& s) {
  Variant v{"some iterations wait for a checkpoint to be written", s.job};
  v.job.slow_iterations = often_slow;
  return {std::move(v)};
}

Variants growth(const Suspect& s) {
  Variant v{"iterations take longer and longer: something accumulates", s.job};
  v.job.grows = true;
  return {std::move(v)};
}

Variants full_precision(const Suspect& s) {
  Variants list;
  const TrainingSpec& now = s.job.training;
  const FlopsPerSecond narrow = s.job.cluster.device.peak_of(Precision::bf16);
  if (now.precision == Precision::fp32) {  // as it is written, and most likely by omission
    for (const bool fused : {false, true}) {
      Variant& v = list.emplace_back(Variant{
          "it trains in fp32 with TF32 products, for no other precision is asked for", s.job});
      v.job.cluster.device.peak[static_cast<std::size_t>(Precision::fp32)] = narrow * 0.5;
      if (fused) v.job.training.stack.kernels.attention = AttentionKernel::flash2;
    }
    Variant& v =
        list.emplace_back(Variant{"it trains in bf16, though no precision is asked for", s.job});
    v.job.training.precision = Precision::bf16;
    v.job.training.stack.kernels.attention = AttentionKernel::flash2;
    return list;
  }
  for (const bool tensor : {false, true}) {
    for (const bool fused : {true, false}) {
      Variant& v = list.emplace_back(
          Variant{fmt::format("it trains in fp32{}, not in {}", tensor ? " (TF32 products)" : "",
                              to_string(now.precision)),
                  s.job});
      v.job.training.precision = Precision::fp32;
      v.job.training.narrow_attention = false;
      if (!fused) v.job.training.stack.kernels.attention = AttentionKernel::unfused;
      auto& peak = v.job.cluster.device.peak[static_cast<std::size_t>(Precision::fp32)];
      if (tensor && narrow.value > 0) peak = narrow * 0.5;
    }
  }
  return list;
}

Variants zero_stage(const Suspect& s) {
  Variants list;
  if (!s.job.plan.even() || s.job.plan.replicas() == 1) return list;
  for (int stage = 0; stage <= 3; ++stage) {
    if (stage == s.job.plan.zero) continue;
    Variant& v = list.emplace_back(
        Variant{fmt::format("ZeRO stage {} instead of {}", stage, s.job.plan.zero), s.job});
    v.job.plan.zero = stage;
  }
  return list;
}

Variants offload(const Suspect& s) {
  Variants list;
  const HostOffload& now = s.job.plan.offload;
  if (now.states()) {
    Variant& v = list.emplace_back(Variant{"nothing is offloaded to the host", s.job});
    v.job.plan.offload = {};
    return list;
  }
  for (const double parameters : {0.0, 1.0}) {
    Variant& v =
        list.emplace_back(Variant{fmt::format("the optimizer{} is in host memory",
                                              parameters > 0 ? " and parameters are" : "'s state"),
                                  s.job});
    v.job.plan.offload.optimizer = 1;
    v.job.plan.offload.parameters = parameters;
    // A job may offload what no run of its stack is known to.
    v.job.training.stack.offers.optimizer_offload = true;
    v.job.training.stack.offers.parameter_offload = true;
  }
  return list;
}

Variants expert_imbalance(const Suspect& s) {
  Variants list;
  if (s.model.experts == 0 || s.job.training.expert_load.given()) return list;
  for (const double times : {1.25, 1.5, 2.0, 3.0, 4.0}) {
    if (times <= s.job.training.expert_imbalance) continue;
    Variant& v = sized(list, s.job,
                       "the fullest experts get about {:.3g} times the mean of the tokens", times);
    v.job.training.expert_imbalance = times;
  }
  return list;
}

Variants expert_capacity(const Suspect& s) {
  Variants list;
  if (s.model.experts == 0) return list;
  const double now = s.job.training.capacity_factor;
  if (now > 0) {
    for (const double imbalance : {1.0, 1.3, 1.7, 2.2}) {
      Variant& v = list.emplace_back(
          Variant{fmt::format("no token is dropped, and the fullest experts get {:.2g} times the "
                              "mean",
                              imbalance),
                  s.job});
      v.job.training.capacity_factor = 0;
      v.job.training.expert_imbalance = imbalance;
    }
    return list;
  }
  for (const double factor : {1.25, 1.5, 2.0, 4.0}) {
    Variant& v = sized(list, s.job, "experts are padded to about {:.3g} times their mean", factor);
    v.job.training.capacity_factor = factor;
  }
  return list;
}

Variants dispatcher(const Suspect& s) {
  Variants list;
  if (s.model.experts == 0 || s.job.plan.ep == 1) return list;
  const auto now = s.job.plan.experts.dispatcher;
  for (const Dispatcher other : {Dispatcher::alltoall, Dispatcher::allgather}) {
    if (other == now) continue;
    Variant& v =
        list.emplace_back(Variant{fmt::format("tokens travel by {} instead of {}",
                                              dispatcher_names[static_cast<std::size_t>(other)],
                                              dispatcher_names[static_cast<std::size_t>(now)]),
                                  s.job});
    v.job.plan.experts.dispatcher = other;
    v.job.plan.experts.multiprocessors = 0;
  }
  return list;
}

Variants few_micro_batches(const Suspect& s) {
  constexpr double much = 0.3;  // of the time of its micro-batches
  if (s.bubble < much) return {};
  return {{fmt::format("it runs as configured, and too few micro-batches leave its pipeline idle "
                       "for {:.0f} % of their time",
                       100 * s.bubble),
           s.job}};
}

Variants not_compiled(const Suspect& s) {
  Variants list = off(s, &Overlap::compile, "the model is not compiled");
  for (auto& v : off(s, &Overlap::cuda_graph, "launches are not replayed from CUDA graphs"))
    list.push_back(std::move(v));
  return list;
}

}  // namespace planner::faults
