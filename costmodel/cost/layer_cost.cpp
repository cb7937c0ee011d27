#include "costmodel/cost/layer_cost.hpp"

#include <algorithm>

#include "costmodel/cost/device_time.hpp"
#include "costmodel/cost/measured_time.hpp"

namespace costmodel {

Cost& Cost::operator+=(const Cost& o) {
  add(o, 1);
  return *this;
}

void Cost::add(const Cost& o, double times) {
  compute += o.compute * times;
  tp_comm += o.tp_comm * times;
  cp_comm += o.cp_comm * times;
  ep_comm += o.ep_comm * times;
  model += o.model * times;
  executed += o.executed * times;
  traffic += o.traffic * times;
  host += o.host * times;
  waited += o.waited * times;
  ep_slack += o.ep_slack * times;
  hidden += o.hidden * times;
}

void Cost::hide_exchange(Seconds time) {
  ep_comm -= time;
  hidden += time;
}

Cost Cost::operator+(const Cost& o) const {
  Cost sum = *this;
  return sum += o;
}

bool in_one_domain(const GroupLayout& group, const ClusterSpec& cluster) {
  const std::size_t tiers = cluster.tiers.size();
  return tiers == 1 || group.outermost() + 1 < static_cast<int>(tiers);
}

Seconds exposed_beside(Seconds alone, Seconds window, double slowdown) {
  return (slowdown - 1) * min(alone, window) + max(Seconds(0), alone - window);
}

Seconds exposed_pipelined(Seconds alone, Seconds window, int ranks, double slowdown) {
  const Seconds piece = alone / ranks;
  return piece + exposed_beside(alone - piece, window, slowdown);
}

Seconds exposed_ring(Seconds alone, Seconds window, int transfers, double slowdown) {
  return transfers * exposed_beside(alone / transfers, window / (transfers + 1), slowdown);
}

const GroupLayout& Pricing::group_of(Axis axis) const {
  switch (axis) {
    case Axis::context: return cp_group;
    case Axis::expert: return ep_group;
    case Axis::expert_tensor: return etp_group;
    case Axis::tensor:
    case Axis::data:
    case Axis::pipeline: return tp_group;
  }
  return tp_group;
}

double Pricing::factor_of(const Op& op) const {
  if (std::holds_alternative<FlashAttention>(op)) return attention_factor;
  const auto* norm = std::get_if<Norm>(&op);
  if (norm != nullptr && norm->gated) return 1;
  // Of these the list has each kernel that a framework launches.
  if (is_product(op) || std::holds_alternative<Dequantise>(op) ||
      std::holds_alternative<Convolution>(op) || std::holds_alternative<UnfusedPasses>(op) ||
      std::holds_alternative<CrossEntropy>(op))
    return 1;
  return std::holds_alternative<Permute>(op) ? permute_factor : elementwise_factor;
}

namespace {

Bytes message_of(const Step& step, const OpList& list) {
  if (const auto* collective = std::get_if<Collective>(&step.node->op))
    return collective->bytes * (step.pass == Pass::forward ? 1 : collective->backward_factor);
  return list.tensors[static_cast<std::size_t>(step.node->inputs.front())]
      .bytes();  // gathered again
}

// The product that overlaps with a collective, if the framework supports it.
Seconds exposed_time(const Step& step, Seconds alone, const Pricing& pricing) {
  if (step.partner == nullptr || pricing.overlap.nothing_hidden) return alone;
  const Seconds window =
      device_time(step.partner->op, step.partner_pass, pricing.cluster->device, pricing.precision);
  const double slowdown = pricing.overlap.slowdown;
  if (step.collective == CollectiveKind::ring)
    return exposed_ring(alone, window, pricing.cp_group.size - 1, slowdown);
  if (step.partner_independent && pricing.backward_tp_overlap)
    return exposed_beside(alone, window, slowdown);
  // Both frameworks pipeline gathers and scatters only (Megatron: --tp-comm-overlap needs sequence
  // parallelism).
  const bool pieces = step.collective != CollectiveKind::all_reduce;
  if (pieces && in_one_domain(pricing.tp_group, *pricing.cluster) &&
      (pricing.overlap.tp_comm_overlap || pricing.overlap.async_tp)) {
    return exposed_pipelined(alone, window, pricing.tp_group.size, slowdown);
  }
  return alone;
}

// The axis of a step's collective; a regathered input belongs to tensor parallelism.
Axis axis_of(const Step& step) {
  const auto* collective = std::get_if<Collective>(&step.node->op);
  return collective != nullptr ? collective->axis : Axis::tensor;
}

// Whether a graph of a part of the layer replays the node's kernels.
bool in_graph(GraphScope scope, const Overlap& overlap) {
  switch (scope) {
    case GraphScope::none: return false;
    case GraphScope::attention: return overlap.graph_attention;
    case GraphScope::mlp: return overlap.graph_mlp;
    case GraphScope::router: return overlap.graph_router;
  }
  return false;
}

// Least times for which the host keeps the device waiting, spent on launches and on collectives.
void wait_for_host(Cost& cost, Seconds least) {
  const Seconds communication = cost.time() - cost.compute;
  const Seconds waits = max(Seconds(0), least - communication - cost.compute);
  cost.compute += waits;
  cost.waited += waits;
  cost.ep_slack = min(cost.ep_comm, cost.time() - least);
}

// `work`: of the step.
StepKernels kernels_with(const Step& step, const Work& work, const Pricing& pricing) {
  const DeviceSpec& device = pricing.cluster->device;
  const Op& op = step.node->op;
  const bool measured = measured_time(op, step.pass, device, pricing.precision).has_value();
  const auto use = [&](auto kernels, auto... more) {
    return pricing.kernels == nullptr || measured
               ? std::nullopt
               : kernels(op, step.pass, *pricing.kernels, storage_bytes(pricing.precision), device,
                         more...);
  };
  StepKernels all;
  if (const auto own = use(kernels_of)) {
    all.add(*own);
  } else {
    const bool alone = measured || is_tabled(op, step.pass, device, pricing.precision);
    const Seconds time = device_time(op, step.pass, device, pricing.precision) *
                         (alone ? 1.0 : pricing.factor_of(op));
    KernelTime kernels{time, work.moved, work.kernels, work.executed, kind_of(op, step.pass)};
    as_traced(kernels, device);
    all.add(kernels);
  }
  if (const auto around = use(kernels_around, joined_after_norm(step.node->site))) all.add(*around);
  if (step.pass == Pass::weight_gradient && !measured && pricing.accumulation_bytes > 0) {
    const Bytes moved(weights_of(op) * pricing.accumulation_bytes);
    all.add({streaming_time(moved, 0, device),
             moved,
             0,
             {},
             KernelKind::elementwise,
             kernel_op_names[static_cast<std::size_t>(KernelOp::accumulate)]});
  }
  return all;
}

void add_step(const Step& step, const OpList& list, const Pricing& pricing, Cost& cost) {
  const Work work = work_of(step.node->op, step.pass, storage_bytes(pricing.precision));
  int kernels = 0;
  for (const KernelTime& each : kernels_with(step, work, pricing)) {
    cost.compute += each.time;
    kernels += each.kernels;
  }
  cost.model += work.model;
  cost.executed += work.executed;
  if (!in_graph(step.node->scope, pricing.overlap)) cost.kernels += kernels;
  if (step.collective == CollectiveKind::none) return;
  const Bytes message = message_of(step, list);
  const Axis axis = axis_of(step);
  const GroupLayout& group = pricing.group_of(axis);
  const bool routed = axis == Axis::expert && step.collective == CollectiveKind::all_to_all;
  ExpertExchange exchange;
  if (routed) {
    const double tokens = std::get<Collective>(step.node->op).routed;
    exchange = expert_exchange(message, pricing.routing, group, *pricing.cluster, tokens);
    if (step.pass == Pass::forward && tokens > 0) {
      const auto map = routing_map(pricing.routing, group, *pricing.cluster, tokens);
      exchange.time += map.time;
      cost.traffic.add(CollectiveKind::all_gather, map.sent);
    }
  } else {
    exchange = {collective_time(step.collective, message, group, *pricing.cluster),
                collective_bytes(step.collective, message, group.size)};
  }
  const Seconds alone = exchange.time + (group.size > 1 ? pricing.collective_wait : Seconds(0));
  Seconds& part = axis == Axis::tensor    ? cost.tp_comm
                  : axis == Axis::context ? cost.cp_comm
                                          : cost.ep_comm;
  const Seconds exposed = exposed_time(step, alone, pricing);
  part += exposed;
  cost.hidden += alone - exposed;
  cost.traffic.add(step.collective, exchange.sent);
}

std::int64_t local_experts(const OpList& list) {
  for (const Node& node : list.nodes) {
    if (const auto* product = std::get_if<GroupedLinear>(&node.op)) return product->experts;
  }
  return 0;
}

// The host of an eager layer: its calls, and the launches of loops within them.
void count_calls(const std::vector<Step>& steps, const Pricing& pricing, Cost& cost) {
  HostCalls sum;
  for (const Step& step : steps) {
    if (!in_graph(step.node->scope, pricing.overlap))
      sum += host_calls(*step.node, step.pass, pricing.layer_calls);
  }
  const Seconds time = sum.calls * pricing.host_call + sum.launches * pricing.kernel_launch;
  if (time <= cost.host) return;
  cost.host = time;
  cost.launches = sum.calls + sum.launches;
}

std::ptrdiff_t tensor_collectives(const std::vector<Step>& steps) {
  return std::ranges::count_if(steps, [](const Step& step) {
    return step.collective != CollectiveKind::none && axis_of(step) == Axis::tensor;
  });
}

}  // namespace

StepKernels step_kernels(const Step& step, const Pricing& pricing) {
  return kernels_with(step, work_of(step.node->op, step.pass, storage_bytes(pricing.precision)),
                      pricing);
}

Cost price(const Step& step, const OpList& list, const Pricing& pricing) {
  Cost cost;
  add_step(step, list, pricing, cost);
  return cost;
}

Cost price(const std::vector<Step>& steps, const OpList& list, const Pricing& pricing) {
  Cost cost;
  Seconds shared;  // computation of the shared experts
  for (const Step& step : steps) {
    const Seconds before = cost.compute;
    add_step(step, list, pricing, cost);
    if (step.node->region == Region::shared_experts) shared += cost.compute - before;
  }
  if (pricing.shared_expert_overlap && !pricing.overlap.nothing_hidden) {
    cost.hide_exchange(cost.ep_comm -
                       exposed_beside(cost.ep_comm, shared, pricing.overlap.slowdown));
  }
  // The device executes kernels and collectives while the host launches the next ones; time waiting
  // for the host counts as computation.
  cost.launches = cost.kernels;
  cost.host = cost.kernels * pricing.kernel_launch;
  if (pricing.host_call.value > 0) count_calls(steps, pricing, cost);
  cost.host += static_cast<double>(tensor_collectives(steps)) * pricing.tensor_host;
  wait_for_host(cost, cost.host);
  cost.compute += cost.kernels * pricing.blocked;
  return cost;
}

namespace {

void add_frozen(const OpList& list, const Pricing& pricing, LayerCost& cost) {
  for (const Node& node : list.nodes) {
    if (!node.frozen()) continue;
    const Bytes stored = frozen_weights(node, storage_bytes(pricing.precision));
    cost.frozen += stored;
    cost.largest_frozen = max(cost.largest_frozen, stored);
    if (is_expert(node.op)) cost.frozen_experts += stored;
  }
  OpList first = list;
  first.input_trained = false;
  cost.first_backward = price(backward_steps(first), first, pricing);
}

bool attends_in_samples(const Op& op) {
  const auto* attention = std::get_if<FlashAttention>(&op);
  return attention != nullptr && attention->attended > 0;
}

void add_attention(const OpList& list, Recomputed what, const Pricing& pricing, LayerCost& cost) {
  const auto time = [&](const std::vector<Step>& steps) {
    Seconds sum;
    for (const Step& step : steps)
      if (attends_in_samples(step.node->op)) sum += price(step, list, pricing).compute;
    return sum;
  };
  cost.attention_forward = time(forward_steps(list));
  cost.attention_backward =
      time(backward_steps(list)) + time(recompute_steps(list, what, pricing.checkpoint_stops));
}

// The host is ahead in the recomputation of a part by what backward leaves it (without exchanges of
// tokens, which other work may hide), unless it waits there for the rows of experts. It launches so
// much of the recomputation during backward, which is no shorter for that.
void add_checkpoints(const OpList& list, Recomputed what, const Pricing& pricing, LayerCost& cost) {
  Cost& again = cost.recompute;
  again.host += checkpoint_calls(list, what).calls * pricing.host_call;
  wait_for_host(again, again.host);
  if (is_recomputed(Region::experts, what)) return;
  const Seconds device = cost.backward.time() - cost.backward.ep_comm;
  const Seconds ahead = min(again.waited, max(Seconds(0), device - cost.backward.host));
  again.compute -= ahead;
  again.waited -= ahead;
  again.host -= ahead;
  for (Cost* pass : {&cost.backward, &cost.input_gradient}) pass->host += ahead;
}

}  // namespace

LayerCost layer_cost(const OpList& list, Recomputed what, const Pricing& pricing) {
  LayerCost cost;
  cost.forward = price(forward_steps(list), list, pricing);
  if (pricing.dropless_host.value > 0) {
    const Seconds slack = cost.forward.ep_slack;
    wait_for_host(cost.forward, pricing.dropless_host * static_cast<double>(local_experts(list)));
    cost.forward.ep_slack = min(slack, cost.forward.ep_slack);
  }
  cost.backward = price(backward_steps(list), list, pricing);
  cost.input_gradient = price(input_gradient_steps(list), list, pricing);
  cost.weight_gradient = price(weight_gradient_steps(list), list, pricing);
  cost.recompute = price(recompute_steps(list, what, pricing.checkpoint_stops), list, pricing);
  if (pricing.recomputed.value > 0) {
    cost.recompute.host += cost.recompute.kernels * pricing.recomputed;
    wait_for_host(cost.recompute, cost.recompute.host);
  }
  if (pricing.host_call.value > 0) add_checkpoints(list, what, pricing, cost);
  cost.footprint = footprint(list, what);
  if (list.adapted) add_frozen(list, pricing, cost);
  if (std::ranges::any_of(list.nodes, attends_in_samples, &Node::op))
    add_attention(list, what, pricing, cost);
  for (const Node& node : list.nodes) {
    cost.products += has_pass(node.op, Pass::weight_gradient) ? 1 : 0;
    if (node.frozen()) continue;
    if (pricing.keeps_narrow_weights)
      cost.weight_casts += weight_cast_time(node.op, pricing.cluster->device, pricing.precision);
    const double weights = weights_of(node.op);
    cost.weights += weights;
    cost.tensors += weights > 0 ? std::max(1, joined_after_norm(node.site)) : 0;
    cost.largest_weights = std::max(cost.largest_weights, weights);
    if (is_expert(node.op)) cost.expert_weights += weights;
  }
  return cost;
}

}  // namespace costmodel
