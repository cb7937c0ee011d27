// A software stack: what a version of a training framework fuses, overlaps and keeps in memory.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "costmodel/base/precision.hpp"
#include "costmodel/base/units.hpp"
#include "costmodel/plan/expert_recipe.hpp"

namespace costmodel {

// flash: the device's best fused kernel (FlashAttention 3 or cuDNN on Hopper). flash2:
// FlashAttention 2, which predates Hopper and is slower there.
enum class AttentionKernel { unfused, flash, flash2 };
inline constexpr std::array<std::string_view, 3> attention_kernel_names{"unfused", "flash",
                                                                        "flash2"};

// The peak memory that a framework's log reports: of the device (nvidia-smi), reserved by the
// allocator, or allocated by it. Whether a plan fits depends on the device's.
enum class ReportedMemory { device, reserved, allocated };
inline constexpr std::array<std::string_view, 3> reported_memory_names{"device", "reserved",
                                                                       "allocated"};

// Overlap of communication with computation, and compilation that saves launches.
// `training.overlap` overrides single keys.
struct Overlap {
  bool overlap_grad_reduce =
      false;  // data-parallel gradient reduction overlaps with the last micro-batch's backward
  bool overlap_param_gather =
      false;  // sharded parameters are gathered during the first micro-batch's forward
  bool tp_comm_overlap =
      false;  // tensor-parallel collectives are pipelined with the product they feed (userbuffers)
  bool pp_overlap = false;  // pipeline transfers overlap with computation
  bool async_tp = false;    // torchtitan's micro-pipelined tensor parallelism
  bool compile = false;     // torch.compile or XLA: a chain of element-wise operators is one kernel
  bool cuda_graph = false;  // kernels are replayed from a CUDA graph
  // The parts of a layer that graphs of their own replay, when cuda_graph is off (Megatron-LM,
  // cuda_graph_scope: attn, mlp, moe_router with moe_preprocess). Experts are in none.
  bool graph_attention = false, graph_mlp = false, graph_router = false;
};

struct StackSpec {
  std::string name;
  std::string title;
  std::string framework;
  std::string version;
  AttentionKernel attention = AttentionKernel::flash;
  bool fused_softmax = true;      // scale, mask and softmax are one kernel (unfused attention)
  int fused_softmax_batches = 1;  // ... only if sequences · heads on a rank is a multiple of this
  bool triangular_softmax = false;  // ... and it does not read masked scores
  bool fused_bias_activation = true;
  bool fused_bias_dropout_add = true;
  bool fused_cross_entropy = false;  // no fp32 copy of the logits is kept
  bool fp32_logits = false;  // ... and when it is kept, it has a gradient of its own (PyTorch's
                             // cross-entropy; Megatron's works in place)
  bool causal_skip = true;   // the attention kernel skips the masked half
  Precision gradient_precision = Precision::fp32;  // of the accumulation buffer
  bool fused_accumulation = false;  // products add 16-bit weight gradients into their buffer, as
                                    // they do fp32 ones (wgrad_gemm_accum_fp16, Transformer Engine)
  int expert_group = 0;  // tokens dispatched to experts together by a product with a one-hot mask
                         // (GShard); 0: tokens are dispatched by copying rows
  bool narrow_saved_inputs = false;  // fp8 products save their inputs in fp8 (Transformer Engine)
  bool bf16_optimizer = false;       // bf16 runs shard as ZeRO-1 and accumulate fp32 gradients in
                                     // addition to the bf16 ones (DeepSpeed's BF16_Optimizer)
  bool master_weights = true;        // the optimizer keeps fp32 copies of 16-bit parameters
  // ZeRO-3 shards the fp32 parameters; 16-bit ones exist only when gathered (FSDP).
  bool fp32_shards = false;
  bool scatter_gather = true;  // pipeline transfers are split over the tensor ranks
  bool backward_tp_overlap =
      false;  // input-gradient collectives overlap with the weight-gradient product
  bool embedding_all_reduce =
      true;                     // first and last stage all-reduce the gradient of tied embeddings
  bool zero_prefetch = true;    // ZeRO-3 gathers the next layer while this one computes
  bool zero_by_module = false;  // ZeRO-3 gathers and scatters per product instead of per layer
  bool activation_offload = false;  // its ZeRO-3 recipes offload the activations of as many layers
                                    // to host memory as needed to fit
  bool whole_in_pipeline = false;   // with pp > 1 ZeRO-3 keeps gathered parameters and gradients
                                   // unsharded, and gathers and scatters once per iteration (FSDP2)
  bool whole_gradients = false;       // ZeRO-2 and 3 reduce-scatter only after all gradients are
                                      // complete (XLA combines the collectives)
  bool zero_one_port = false;         // ZeRO-3 collectives leave a node through one of its ports
  bool one_collective_queue = false;  // with tp > 1 gradient reduction waits for tensor-parallel
                                      // collectives instead of overlapping with computation
  int max_zero = 3;                   // highest ZeRO stage the framework offers
  int default_zero = 0;               // set by its recipes when a plan omits it
  bool default_sequence_parallel = false;  // with tp > 1
  int default_micro_batches = 0;           // per pipeline rank; 0: the search chooses
  int default_stages = 0;            // virtual, per rank, when interleaved; 0: the search chooses
  bool default_interleaved = false;  // its recipes interleave whenever the layers divide
  bool sequence_parallel = true;     // offered features, from here on
  bool selective_recompute = true;
  bool selective_half = false;  // "selective" keeps every second product or layer (torchtitan)
  bool interleaved = true;
  bool context_parallel = false;
  bool zero_bubble = false;         // schedules with split backward (arXiv:2401.10241)
  bool post_validation = false;     // ... whose optimizer steps without waiting for the global
                                    // gradient norm and validates afterwards (section 4 there)
  bool uneven_stages = false;       // any contiguous partition of the layers into stages
  bool rest_on_last_stage = false;  // layers that do not divide: rest_on_last(), parallel_plan.hpp
  bool layout_by_cost = false;      // stages are cut by cost when a plan says no stage_layers
  // Time that every local expert adds to a grouped product, whatever its rows: with 16-bit and with
  // narrower operands, and where one kernel does all experts.
  Seconds expert_start, expert_start_narrow, expert_start_fused;
  Seconds dropless_host;  // host time per local expert of the forward of a layer whose experts take
                          // as many rows as are routed to them, with narrow operands: the host
                          // waits for their number, and then launches for each expert
  double permute_factor = 1;        // as elementwise_factor, of kernels that sort rows by expert
  double exchange_efficiency = 1;   // of deepep and hybridep, relative to collectives' on a tier
  double eager_expert_overlap = 1;  // part of an overlapped expert exchange that is hidden when
                                    // no graph replays the iteration
  bool flex_dispatcher = false;     // offers deepep and hybridep
  bool expert_overlap = false;      // offers the exchange beside another micro-batch's computation
  bool recompute_modules = false;   // offers recomputation by modules
  ExpertRecipe experts;             // what its recipes choose when a plan says nothing
  double elementwise_factor =
      1;  // time of memory-bound kernels relative to the device's best: unfused, casting, split
  // Slowdown of computation that overlaps with a layer's ZeRO-3 collectives, copies in and out of
  // flat buffers included. Default: overlap_slowdown.
  double zero_slowdown = 1.1256;
  double attention_factor = 1;  // time of its fused attention kernel relative to the best one
  // Host time of a tensor-parallel collective, beyond its launch; and what each tensor rank adds to
  // it in a pipeline over several nodes.
  Seconds tensor_collective_host, tensor_rank_host;
  Bytes gradient_bucket;     // gradients are reduced in messages of this size; 0: all at once
  Seconds kernel_launch;     // host time per kernel, where the framework adds to the bare launch
  Seconds collective_wait;   // added to each exposed tensor-parallel collective and pipeline
                             // transfer: ranks do not arrive at the same time
  Seconds micro_batch_host;  // host time per micro-batch and (virtual) stage: batch broadcast, loss
                             // collection, Python between layers
  Seconds iteration_host;    // host time per iteration: loss scale, norms and counters read back
  Overlap overlap;
  Bytes context;             // CUDA and NCCL contexts, outside the allocator
  double fragmentation = 0;  // allocator reserve as a fraction of the allocated bytes
  ReportedMemory reported = ReportedMemory::device;
};

// Converts a device peak to the peak that the framework's log reports.
Bytes reported_peak(Bytes peak, const StackSpec& stack);

}  // namespace costmodel
