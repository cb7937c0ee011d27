// A software stack: what a version of a training framework fuses, overlaps and keeps in memory.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "costmodel/base/precision.hpp"
#include "costmodel/base/units.hpp"
#include "costmodel/plan/expert_recipe.hpp"
#include "costmodel/plan/kernel_set.hpp"
#include "costmodel/plan/loss_kernel.hpp"

namespace costmodel {

struct DeviceSpec;
struct ModelSpec;

// flash: the device's best fused kernel (FlashAttention 3 or cuDNN on Hopper). flash2:
// FlashAttention 2, which predates Hopper and is slower there. cudnn: cuDNN's by PyTorch's SDPA; as
// flash where the device has no table of it.
enum class AttentionKernel { unfused, flash, flash2, cudnn };
inline constexpr std::array<std::string_view, 4> attention_kernel_names{"unfused", "flash",
                                                                        "flash2", "cudnn"};

// The peak memory that a framework's log reports: of the device (nvidia-smi), reserved by the
// allocator, or allocated by it. Whether a plan fits depends on the device's.
enum class ReportedMemory { device, reserved, allocated };
inline constexpr std::array<std::string_view, 3> reported_memory_names{"device", "reserved",
                                                                       "allocated"};

// Whether the optimizer makes fp32 copies of its shard of 16-bit gradients for its step: unless it
// takes 16-bit moments and gradients as they are (precision-aware), or also then.
enum class WidenedGradients { never, plain, always };
inline constexpr std::array<std::string_view, 3> widened_gradients_names{"never", "plain",
                                                                         "always"};

// Slowdown of concurrent communication and computation: the collective's kernels use
// multiprocessors and bandwidth. This is the overlap coefficient 1.1256 measured by Galvatron (Miao
// et al. 2022, arXiv:2211.13878; the profile in PKU-DAIR/Hetu-Galvatron @cea12ffb146a).
inline constexpr double overlap_slowdown = 1.1256;

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
  // cuda_graph_scope: attn, mlp, moe_router with moe_preprocess, mamba). Experts are in none, and
  // scans are priced as launched one by one either way.
  bool graph_attention = false, graph_mlp = false, graph_router = false, graph_scan = false;
  bool graphs_parts() const { return graph_attention || graph_mlp || graph_router || graph_scan; }
  // No setting of a framework: communication counts in full, as if nothing else ran beside it
  // (estimate/hidden_time).
  bool nothing_hidden = false;
  double slowdown = overlap_slowdown;  // no setting either: `--sensitivity` moves it
};

// Which operators are one kernel, and how fast its kernels are. Read where operators are listed and
// priced (estimate/pricing), by exports, and by ranks that agree on what they compute.
struct StackKernels {
  AttentionKernel attention = AttentionKernel::flash;
  bool fused_softmax = true;      // scale, mask and softmax are one kernel (unfused attention)
  int fused_softmax_batches = 1;  // ... only if sequences · heads on a rank is a multiple of this
  bool fused_router = false;      // few kernels choose experts (moe_router_fusion)
  bool fused_rotary = true;       // one kernel turns a vector (apply_rope_fusion)
  bool triangular_softmax = false;  // ... and it does not read masked scores
  bool causal_skip = true;          // the attention kernel skips the masked half
  bool fused_bias_activation = true;
  bool fused_bias_dropout_add = true;
  LossKernel loss = LossKernel::unfused;
  std::optional<LossKernel> compiled_loss;  // with overlap.compile, unless a run names its loss
  bool fused_accumulation = false;  // products add 16-bit weight gradients into their buffer, as
                                    // they do fp32 ones (wgrad_gemm_accum_fp16, Transformer Engine)
  // Bytes a parameter of the kernel that adds a 16-bit weight gradient to its fp32 buffer, where it
  // is one of its own; 0: the product does it.
  double accumulation_bytes = 0;
  double elementwise_factor =
      1;  // time of memory-bound kernels relative to the device's best: unfused, casting, split
  double attention_factor = 1;  // time of its fused attention kernel relative to the best one
  bool scales_adapter_output = false;  // an adapter's result is scaled, not its narrow middle
  // The implementations between the products: without a compiler, with one (overlap.compile), and
  // of a model whose adapters alone are trained; empty: by the op list's own passes and the factor.
  KernelSet eager, compiled, adapters;
  const KernelSet& used(bool compile, bool adapts) const {
    if (compile && !compiled.empty()) return compiled;
    return adapts && !adapters.empty() ? adapters : eager;
  }
};

// What a device keeps, in which precision, and what of its memory is not tensors. Read by the
// memory of a plan (estimate/memory), by bytes per parameter, and where a plan or a run is made
// fit.
struct StackMemory {
  Precision gradient_precision = Precision::fp32;  // of the accumulation buffer
  bool fp32_logits = false;  // with an unfused loss, the fp32 logits have a gradient of their own
                             // (PyTorch's cross-entropy; Megatron's works in place)
  bool narrow_saved_inputs = false;  // fp8 products save their inputs in fp8 (Transformer Engine)
  bool bf16_optimizer = false;       // bf16 runs shard as ZeRO-1 and accumulate fp32 gradients in
                                     // addition to the bf16 ones (DeepSpeed's BF16_Optimizer)
  bool master_weights = true;        // the optimizer keeps fp32 copies of 16-bit parameters
  // ZeRO-3 shards the fp32 parameters; 16-bit ones exist only when gathered (FSDP).
  bool fp32_shards = false;
  bool checkpoint_stops = false;  // recomputation ends where the last kept tensor of a layer is
                                  // made (torch.utils.checkpoint, early stop)
  bool gradient_offload = false;  // with ZeRO 2 and 3 gradients follow the states to the host, as
                                  // they are reduced (DeepSpeed, FSDP)
  bool plain_adapters = false;    // adapters are trained as they are, without master weights, in
                                  // fp32 unless a run says otherwise
  bool autocast = false;          // 16-bit weights are casts that products keep for backward, so
                                  // that a recomputed layer has none (torch.autocast)
  bool frees_gradients = false;   // with each step, so that they appear anew in backward
                                  // (PyTorch, zero_grad(set_to_none=True))
  bool dummy_gradients = false;  // products add to the main gradients; a tensor for each shape of a
                                 // weight is kept that autograd gets (TransformerEngine)
  bool selective_half = false;   // "selective" keeps every second product or layer (torchtitan)
  WidenedGradients widened_gradients = WidenedGradients::never;
  Bytes context;  // CUDA and NCCL contexts and workspaces: all that no tensor takes
  // Of the context, workspaces of cuBLAS that the allocator counts, each of the device's
  // workspace: of threads, and of products in groups.
  int workspaces = 0, expert_workspaces = 0;
  bool expandable_segments = false;  // of the allocator: a stream's blocks lie in one that grows
  double fragmentation = 0;          // allocator reserve as a fraction of the allocated bytes
  ReportedMemory reported = ReportedMemory::device;
};

// How it sends beside ZeRO and experts: over tensor ranks, between stages, and at the end of an
// iteration. Read by the costs of stages and of the iteration's end (estimate/).
struct StackCollectives {
  bool scatter_gather = true;        // pipeline transfers are split over the tensor ranks
  bool backward_tp_overlap = false;  // input-gradient collectives overlap with the weight-gradient
                                     // product
  bool embedding_all_reduce =
      true;  // first and last stage all-reduce the gradient of tied embeddings
  bool one_collective_queue = false;  // with tp > 1 gradient reduction overlaps with nothing, and
                                      // in a pipeline the last gradient is sent after it
  bool reduction_not_hidden = false;  // gradient reduction overlaps with nothing, though it is
                                      // launched in the last backward
  bool hides_reduction(int tp) const {
    return !reduction_not_hidden && !(one_collective_queue && tp > 1);
  }
  Bytes gradient_bucket;         // gradients are reduced in messages of this size; 0: all at once
  bool post_validation = false;  // schedules with split backward: the optimizer steps without
                                 // waiting for the global gradient norm and validates afterwards
                                 // (arXiv:2401.10241, section 4)
};

// How it gathers and scatters what ZeRO-2 and 3 shard. Read by the costs and the memory of a stage
// (estimate/stage_cost, estimate/memory) and by plan_as_run.
struct StackZero {
  bool prefetch = true;            // ZeRO-3 gathers the next layer while this one computes
  bool by_module = false;          // ZeRO-3 gathers and scatters per product instead of per layer
  bool whole_in_pipeline = false;  // with pp > 1 ZeRO-3 keeps gathered parameters and gradients
                                   // unsharded, and gathers and scatters once per iteration (FSDP2)
  bool root_unit = false;  // ZeRO-3 gathers a layer at a time, and embedding and head as one
                           // unit that stays gathered (FSDP's root)
  // ZeRO-2 shards parameters too, frozen ones with them, and without a pipeline each micro-batch's
  // forward gathers them, which then stay until its backward ends (FSDP's SHARD_GRAD_OP, FSDP2's
  // reshard_after_forward: false).
  bool regathers = false;
  bool whole_gradients = false;  // ZeRO-2 and 3 reduce-scatter only after all gradients are
                                 // complete (XLA combines the collectives)
  bool one_port = false;         // ZeRO-3 collectives leave a node through one of its ports
  // ZeRO-1 keeps every rank's gradients unsharded: one all-reduce after the last backward, and all
  // of them clipped and cleared (nanotron with fp32 accumulation).
  bool all_reduce = false;
  // ZeRO-1 gives every rank complete parameter tensors, and each rank broadcasts its own, one after
  // the other; otherwise ranks gather their shares (InternEvo).
  bool broadcasts = false;
  // Host time of a rank's slice of a parameter, where ZeRO-1 and 2 gather each parameter tensor by
  // itself, as the slices of all ranks; 0: they gather one buffer.
  Seconds slice;
  // Slowdown of computation that overlaps with a layer's ZeRO-3 collectives, copies in and out of
  // flat buffers included. Default: overlap_slowdown.
  double slowdown = overlap_slowdown;
};

// Time of the host, beyond the device's own: per kernel, per collective, per micro-batch and per
// iteration. Read by prices of kernels and by the costs of stages and iterations (estimate/).
struct StackHost {
  Seconds kernel_launch;    // per kernel, where the framework adds to the bare launch
  Seconds recomputed;       // added to that where checkpoints wrap the operators
  Seconds collective_wait;  // added to each exposed tensor-parallel collective and pipeline
                            // transfer: ranks do not arrive at the same time
  Seconds micro_batch;  // per micro-batch and (virtual) stage: batch broadcast, loss collection,
                        // Python between layers
  Seconds parameter;    // per parameter tensor: its gradient clipped, its optimizer started
  Seconds iteration;    // per iteration: loss scale, norms and counters read back
  bool counts_calls = false;  // the calls of its layers are those of operators/host_calls, each as
                              // long as the device's host_call
  // Of a tensor-parallel collective, beyond its launch; and what each tensor rank adds to it in a
  // pipeline over several nodes.
  Seconds tensor_collective, tensor_rank;
};

// What experts cost beyond their products, and how tokens are dispatched. Read by prices of
// operators and exchanges (estimate/pricing), and by the fit of a network.
struct StackExperts {
  int group = 0;  // tokens dispatched to experts together by a product with a one-hot mask
                  // (GShard); 0: tokens are dispatched by copying rows
  // Time that every local expert adds to a grouped product, whatever its rows: with 16-bit and with
  // narrower operands, and where one kernel does all experts.
  Seconds start, start_narrow, start_fused;
  Seconds dropless_host;  // host time per local expert of the forward of a layer whose experts take
                          // as many rows as are routed to them, with narrow operands: the host
                          // waits for their number, and then launches for each expert
  bool unfused_bias = false;       // kernels one after another add biases of experts, and clamp
                                   // their gated activation
  double permute_factor = 1;       // as elementwise_factor, of kernels that sort rows by expert
  double exchange_efficiency = 1;  // of deepep and hybridep, relative to collectives' on a tier
  double eager_overlap = 1;        // part of an overlapped expert exchange that is hidden when no
                                   // graph replays the iteration
};

// Which of the exchanges with one copy of a token a rank a framework has.
enum class FlexDispatcher { none, deepep, both };
inline constexpr std::array<std::string_view, 3> flex_dispatcher_names{"false", "deepep", "true"};

// What a plan may ask for. Read by the rules of plans (plan/) and by the search spaces of the
// planner.
struct StackOffers {
  int max_zero = 3;                 // highest ZeRO stage
  int max_zero_in_pipeline = 3;     // ... with several pipeline stages
  bool data_parallel_only = false;  // PyTorch's DDP or FSDP alone: ZeRO 0, 2 and 3
  bool zero_one = true;  // plan may choose ZeRO 1, which FSDP is without: it shards gradients too
  bool pipeline = true;
  bool sequence_parallel = true;
  bool selective_recompute = true;
  bool partial_recompute = true;   // of some of a stage's layers
  bool recompute_modules = false;  // recomputation by modules
  bool interleaved = true;
  bool context_parallel = false;
  bool zero_bubble = false;    // schedules with split backward (arXiv:2401.10241)
  bool dualpipe = false;       // DualPipe and DualPipeV (arXiv:2412.19437)
  bool uneven_stages = false;  // any contiguous partition of the layers into stages
  bool stage_lists = false;    // the same, where a list says each stage's layers
  bool stage_sizes = false;    // stages with tensor and data parallel sizes of their own
  FlexDispatcher flex_dispatcher = FlexDispatcher::none;
  bool expert_overlap = false;      // the expert exchange beside another micro-batch's computation
  bool shared_overlap = false;      // ... during the shared experts', whatever the dispatcher
  bool micro_batch_groups = false;  // interleaved with larger groups than the pipeline
  bool batch_by_pipeline =
      false;              // refuses a global batch that is no multiple of the pipeline size
  bool adapters = false;  // low-rank ones beside a frozen base
  bool exchanged_adapters = false;  // see FineTuning::all_to_all
  bool expert_adapters = false;     // ... each expert, a module, has its own
  bool joint_adapters = false;      // ... one for queries, keys and values, one for gate and up
  bool nf4 = false;                 // ... which may be quantised to 4 bits
  bool hybrid_sharding = false;     // groups of ranks that each hold all of ZeRO's shards (HSDP)
  bool outer_optimizer_shards = false;  // ... and share the optimizer's states (HFSDP)
  bool zero_plus_plus = false;          // ZeRO++ (arXiv:2306.10209)
  bool optimizer_offload = false;       // optimizer states in host memory (HostOffload)
  bool parameter_offload = false;       // ... and sharded parameters with them
  bool drive_offload = false;           // ... either of them on NVMe drives
  bool layer_offload = false;           // activations of chosen layers there
  bool module_offload = false;          // ... and of chosen modules
  bool packing = false;                 // several samples in a sequence, each attending to itself
  bool copied_scan_groups = false;  // with more tensor ranks than groups, each holds B and C whole

  bool any_layers() const { return uneven_stages || stage_lists; }
};

// What its recipes choose where a plan says nothing. Read where a scenario's plan is completed
// (scenario/, the evidence of planner/accuracy).
struct StackDefaults {
  int zero = 0;
  bool sequence_parallel = false;   // with tp > 1
  int micro_batches = 0;            // per pipeline rank; 0: the search chooses
  int stages = 0;                   // virtual, per rank, when interleaved; 0: the search chooses
  bool interleaved = false;         // its recipes interleave whenever the layers divide
  bool rest_on_last_stage = false;  // layers that do not divide: rest_on_last(), parallel_plan.hpp
  bool layout_by_cost = false;      // stages are cut by cost when a plan says no stage_layers
  bool shards_in_node = false;      // each node holds all of ZeRO's shards: usual_shard_groups()
  ExpertRecipe experts;
};

// The stack of the same name's runs of a year and before.
struct EarlierStack {
  std::string stack;
  int until = 0;
};

struct StackSpec {
  std::string name;
  std::string title;
  EarlierStack earlier;
  std::string framework;
  std::string lineage;  // stacks of one code, whose errors are of one kind
  StackKernels kernels;
  StackMemory memory;
  StackCollectives collectives;
  StackZero zero;
  StackHost host;
  StackExperts experts;
  StackOffers offers;
  StackDefaults defaults;
  Overlap overlap;
};

// Workspaces of cuBLAS on a device, which the allocator counts.
Bytes workspaces(const ModelSpec& model, const DeviceSpec& device, const StackMemory& stack);

// What the allocator of a device counts: what tensors take, and what it holds for them.
struct CountedPeak {
  Bytes allocated, reserved;
  Bytes wanted;  // what it would come to hold in a device without end
  // Whether it gives cached blocks back and asks for them again, which takes time.
  bool retries() const { return wanted > reserved; }
};
// Of a device's peak, by the stack's reserve and contexts, of which the allocator counts the
// workspaces.
CountedPeak counted_peak(Bytes peak, const StackMemory& memory, Bytes workspaces = {});

}  // namespace costmodel
