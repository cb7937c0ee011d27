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

// With operands in 8 bits or less the module also casts its input and its weight, and keeps their
// scales. Forward takes more than twice as long so (TransformerEngine issue 761, April 2024), both
// passes 3.6 times as long in an early version (issue 445, October 2023). Runs of NeMo and of
// MLPerf's LoRA in fp8 whose device has little to do leave 8 to 9 calls for forward; what backward
// takes more is assumed to be as much again.
constexpr Counts narrow_module = each(8, 4, 4);

// A product outside of Transformer Engine (tensor_parallel/layers.py): the logits, and an
// adapter's.
constexpr Counts plain_product = each(2, 1, 1);

// router_gating_linear: a function of its own, with the cast of its input.
Counts of_linear(const Linear& op, Site site, bool narrow) {
  if (site == Site::router) return each(2, 2, 1);
  if (op.wide) return plain_product;
  return narrow ? narrow_module : module;
}

// For each expert of a rank a grouped product launches its kernel, and a cast of narrow operands
// (pytorch/module/grouped_linear.py, general_grouped_gemm and split_quantize: loops in C++); for
// those it gathers quantizers expert by expert and splits its input, two calls of forward. Every
// weight, and every bias, is a parameter: backward finds its main_grad and makes its dummy
// gradient, autograd accumulates that, and a hook of DistributedDataParallel counts it
// (_make_backward_post_hook, register_grad_ready), each as long as a launch. TransformerEngine
// issue 2897 gives 33 us an expert for both products backward before autograd and the hook
// (configs/microbench/host.yaml).
Counts of_grouped(const GroupedLinear& op, bool narrow) {
  const auto local = static_cast<int>(op.experts), casts = narrow ? local : 0;
  Counts counts = narrow ? narrow_module : module;
  if (narrow) counts.forward.calls += 2;
  counts.forward.launches = local + casts;
  counts.input_gradient.launches = local + casts;
  counts.weight_gradient.launches = local + 4 * (op.bias ? 2 : 1) * local;
  return counts;
}

// A norm is a module of its own (pytorch/ops/basic/rmsnorm.py, called through an OperationFuser
// that each call makes anew), or part of the product after it (TELayerNormColumnParallelLinear):
// of queries, keys and values, and of what comes from latent vectors (gpt_layer_specs.py).
Counts of_norm(const Norm& op, Site site, bool latent) {
  const bool joined = site == Site::latent_norm || site == Site::scan_norm ||
                      (site == Site::attention_norm && !latent);
  if (joined || op.gated) return each(1, 1);
  return each(3 * op.gains, 2 * op.gains);
}

// Fused, queries and keys are turned one after the other. Else (rope_utils.py,
// _apply_rotary_pos_emb_bshd) each of them in 12: cosine and sine with scale and cast, the half
// turned, two products and their sum, and a concatenation that leaves the rest as it is; of latent
// attention, which parts halves first and puts queries, keys and values together
// (multi_latent_attention.py), 29 in all.
Counts of_rotary(const LayerCalls& layer) {
  if (layer.fused_rotary) return each(2, 2);
  return layer.latent ? each(29, 29) : each(24, 16);
}

// Tokens an expert before the exchange (moe/token_dispatcher.py, MoEAlltoAllTokenDispatcher:
// preprocess and _maybe_dtoh_and_synchronize): three sums by expert, rank and sender with their
// casts, slices and copies, a gather over ranks, five copies to the host on a stream of their own
// with its events, and the wait. Padded to a capacity, their number is known. DeepEP and HybridEP
// make their metadata in kernels (fused_a2a.py).
int preprocess_calls(const LayerCalls& routing) {
  if (!routing.exchanges) return 3;
  if (sends_once_a_rank(routing.dispatcher)) return 4;
  return routing.padded ? 2 : 17;
}

// moe/router.py and moe_utils.py. Fused: top-k with its weights 2, scores of the auxiliary loss 2,
// that loss 2 with its record 2 and its attachment 1; backward one of each. Without
// moe_router_fusion: topk_routing_with_score_function 9 (scores, top-k, weights and the map of
// chosen experts: zeros, casts and scatters), compute_routing_scores_for_aux_loss 6, the loss with
// its tokens an expert and their reduction 6, record and attachment as there, backward of these 14;
// by a sigmoid with a bias twelve more (casts, sums, quotients, a gather), six of them backward.
// The bias counts its tokens by 2 (_apply_expert_bias). apply_router_token_dropping: top-k by
// expert, its mask, and two products with it.
Counts of_routing(const LayerCalls& layer) {
  const int sigmoid = layer.sigmoid ? 1 : 0;
  const int chosen = layer.fused_router ? 9 : 24 + 12 * sigmoid;
  return each(chosen + 2 * sigmoid + (layer.drops ? 10 : 0) + preprocess_calls(layer),
              layer.fused_router ? 4 : 14 + 6 * sigmoid);
}

// With routed rows go their probabilities (token_dispatcher.py, token_dispatch). A ring of keys and
// values (attention/dot_product_attention/context_parallel.py, AttnFuncWithCPAndKVP2P @d0067d0d): a
// concatenation, and in each step a send, a receive, the attention itself, of which FlashAttention
// has one, and a correction of the sums and of the result; backward two exchanges a step, and what
// accumulates the gradients of queries, keys and values.
Counts of_collective(const Node& node, const Collective& op, int cp) {
  if (op.forward == CollectiveKind::ring) return each(5 * cp - 2, 6 * cp + 1);
  return node.site == Site::dispatch ? each(2, 2) : each(1, 1);
}

// moe_permute_fusion (TransformerEngine @d0067d0d, pytorch/triton/permutation.py): a map of rows is
// three kernels (make_row_id_map), one of chunks is one (make_chunk_sort_map), each rank's for
// itself; then the copy, and backward the copy back. DeepEP's rows come with indices, of which a
// kernel makes the map of chosen experts, and are permuted as by the first (token_dispatcher.py,
// get_permuted_hidden_states_by_experts); HybridEP's kernels permute as they copy.
Counts of_permute(Site site, Dispatcher dispatcher) {
  if (site == Site::permute) return each(4, 1);
  if (site == Site::unpermute) return each(1, 1);
  if (dispatcher == Dispatcher::hybridep) return {};
  if (dispatcher == Dispatcher::deepep)
    return site == Site::sort_by_expert ? each(5, 2) : each(1, 1);
  return each(2, 1);
}

Counts counts_of(const Node& node, const LayerCalls& layer) {
  return std::visit(
      Visitor{
          [&](const Linear& op) { return of_linear(op, node.site, layer.narrow); },
          [&](const GroupedLinear& op) { return of_grouped(op, layer.narrow); },
          [&](const Routing&) { return of_routing(layer); },
          [&](const Collective& op) { return of_collective(node, op, layer.cp); },
          // DotProductAttention chooses a backend at every call, then calls a fused function.
          [](const FlashAttention&) { return each(3, 2); },
          [&](const Rotary&) { return of_rotary(layer); },
          [&](const Norm& op) { return of_norm(op, node.site, layer.latent); },
          [&](const Permute&) { return of_permute(node.site, layer.dispatcher); },
          [](const Activation& op) { return op.in_product ? Counts{} : each(1, 1); },
          [](const UnfusedPasses& op) { return each(op.forward.calls, op.backward.calls); },
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

HostCalls host_calls(const Node& node, Pass pass, const LayerCalls& layer) {
  const Counts counts = counts_of(node, layer);
  switch (pass) {
    case Pass::forward: return counts.forward;
    case Pass::input_gradient: return counts.input_gradient;
    case Pass::weight_gradient: return counts.weight_gradient;
  }
  return {};
}

// tensor_parallel/random.py, CheckpointWithoutOutput: forward takes the states of the generators,
// runs a function of autograd's and frees its output (2 calls); backward sets the states, enters
// the quantisation's contexts, detaches the inputs, and calls autograd within autograd (5).
// CheckpointFunction does the same for a layer or for attention.
HostCalls checkpoint_calls(const OpList& list, Recomputed what) {
  int functions = 0;
  unsigned last = 0;
  for (const Node& node : list.nodes) {
    // Parts of a region that is recomputed are recomputed together.
    const unsigned part = what == Recomputed::everything
                              ? 1
                              : static_cast<unsigned>(node.region) & static_cast<unsigned>(what);
    if (part != 0 && part != last) ++functions;
    last = part;
  }
  return {7 * functions, 0};
}

}  // namespace costmodel
