#include "costmodel/operators/host_calls.hpp"

namespace costmodel {

namespace {

// By pass: forward, input gradient, weight gradient.
struct Counts {
  HostCalls forward, input_gradient, weight_gradient;
};

constexpr Counts each(int forward, int input_gradient, int weight_gradient = 0) {
  return {{forward}, {input_gradient}, {weight_gradient}};
}

// A module of Transformer Engine keeps the host 2.7 times as long as PyTorch's Linear
// (TransformerEngine issue 2053, configs/microbench/host.yaml): three calls, and as many less one
// for each gradient, which one autograd node computes.
constexpr Counts module = each(3, 2, 2);

// For each expert of a rank a grouped product launches its kernel, and a cast of narrow operands
// (pytorch/module/grouped_linear.py, general_grouped_gemm and split_quantize: loops in C++).
Counts of_grouped(const GroupedLinear& op, bool narrow) {
  const auto local = static_cast<int>(op.experts), casts = narrow ? local : 0;
  Counts counts = module;
  counts.forward.launches = local + casts;
  counts.input_gradient.launches = local + casts;
  counts.weight_gradient.launches = local;
  return counts;
}

// Tokens an expert before the exchange (moe/token_dispatcher.py, MoEAlltoAllTokenDispatcher:
// preprocess and _maybe_dtoh_and_synchronize): three sums by expert, rank and sender with their
// casts, slices and copies, a gather over ranks, five copies to the host on a stream of their own
// with its events, and the wait. Padded to a capacity, their number is known. DeepEP and HybridEP
// make their metadata in kernels (fused_a2a.py).
int preprocess_calls(const RoutingCalls& routing) {
  if (!routing.exchanges) return 3;
  if (sends_once_a_rank(routing.dispatcher)) return 4;
  return routing.padded ? 2 : 17;
}

// moe/router.py and moe_utils.py without moe_router_fusion, as the H100 recipes of Megatron-Bridge
// have it: topk_routing_with_score_function 9 (scores, top-k, weights and the map of chosen
// experts: zeros, casts and scatters), compute_routing_scores_for_aux_loss 6, the loss with its
// tokens an expert and their reduction 6, its record 2 and its attachment 1. Backward of these 14.
// apply_router_token_dropping: top-k by expert, its mask, and two products with it.
Counts of_routing(const RoutingCalls& routing) {
  return each(24 + (routing.drops ? 10 : 0) + preprocess_calls(routing), 14);
}

// With routed rows go their probabilities (token_dispatcher.py, token_dispatch).
Counts of_collective(Site site) { return site == Site::dispatch ? each(2, 2) : each(1, 1); }

Counts counts_of(const Node& node, bool narrow, const RoutingCalls& routing) {
  return std::visit(
      Visitor{
          // router_gating_linear: a function of its own, with the cast of its input.
          [&](const Linear&) { return node.site == Site::router ? each(2, 2, 1) : module; },
          [&](const GroupedLinear& op) { return of_grouped(op, narrow); },
          [&](const Routing&) { return of_routing(routing); },
          [&](const Collective&) { return of_collective(node.site); },
          // DotProductAttention chooses a backend at every call, then calls a fused function.
          [](const FlashAttention&) { return each(3, 2); },
          // Queries and keys are turned one after the other (rotary_pos_embedding).
          [](const Rotary&) { return each(2, 2); },
          [](const Norm& op) { return each(op.gains, op.gains); },
          // Fused permutation: a map of rows, and the copy (moe_permute_fusion).
          [&](const Permute&) { return node.site == Site::permute ? each(2, 2) : each(1, 1); },
          [](const Activation& op) { return op.in_product ? Counts{} : each(1, 1); },
          [](const UnfusedPasses& op) { return each(op.forward_kernels, op.backward_kernels); },
          [](const Convolution&) { return each(1, 1, 1); },
          [](const Scan&) { return each(2, 2); },
          [](const AttentionScores&) { return each(1, 2); },
          [](const AttentionContext&) { return each(1, 2); },
          [](const Softmax&) { return each(1, 1); },
          [](const Dropout&) { return each(1, 1); },
          [](const BiasDropoutAdd&) { return each(1, 1); },
          [](const Embedding&) { return each(1, 0, 1); },
          [](const PositionEmbedding&) { return each(1, 0, 1); },
          [](const CrossEntropy&) { return each(2, 1); },
          [](const Dequantise&) { return each(1, 1); },
          [](const AdapterSum& op) { return each(op.scales ? 2 : 1, 1); },
      },
      node.op);
}

}  // namespace

HostCalls host_calls(const Node& node, Pass pass, bool narrow, const RoutingCalls& routing) {
  const Counts counts = counts_of(node, narrow, routing);
  switch (pass) {
    case Pass::forward: return counts.forward;
    case Pass::input_gradient: return counts.input_gradient;
    case Pass::weight_gradient: return counts.weight_gradient;
  }
  return {};
}

}  // namespace costmodel
