// What a training framework and its version fuse, overlap and keep in memory.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "costmodel/base/precision.hpp"
#include "costmodel/base/units.hpp"

namespace costmodel {

// flash: the best fused kernel of the device (FlashAttention 3 or cuDNN on Hopper); flash2:
// FlashAttention 2, which is older than Hopper and slower there.
enum class AttentionKernel { unfused, flash, flash2 };
inline constexpr std::array<std::string_view, 3> attention_kernel_names{"unfused", "flash",
                                                                        "flash2"};

// What a framework's own log calls its peak memory: the whole device (nvidia-smi), the allocator
// with what it keeps in reserve, or only what it handed out. Whether a plan fits is a matter of the
// whole device.
enum class ReportedMemory { device, reserved, allocated };
inline constexpr std::array<std::string_view, 3> reported_memory_names{"device", "reserved",
                                                                       "allocated"};

// Communication hidden behind computation, and launch-saving compilation. `training.overlap`
// overrides single keys.
struct Overlap {
  bool overlap_grad_reduce =
      false;  // data-parallel gradient reduction runs during the last micro-batch's backward
  bool overlap_param_gather =
      false;  // sharded parameters are gathered during the first micro-batch's forward
  bool tp_comm_overlap =
      false;  // tensor-parallel collectives pipelined with the product they feed (userbuffers)
  bool pp_overlap = false;  // pipeline transfers run beside computation
  bool async_tp = false;    // torchtitan's micro-pipelined tensor parallelism
  bool compile = false;     // torch.compile or XLA: element-wise chains are one kernel
  bool cuda_graph = false;  // launches replayed from a graph
};

struct StackSpec {
  std::string name;
  std::string title;
  std::string framework;
  std::string version;
  AttentionKernel attention = AttentionKernel::flash;
  bool fused_softmax = true;        // scale, mask and softmax in one kernel (unfused attention)
  int fused_softmax_batches = 1;    // ... when sequences · heads on a rank is a multiple of this
  bool triangular_softmax = false;  // ... and reads no masked score
  bool fused_bias_activation = true;
  bool fused_bias_dropout_add = true;
  bool fused_cross_entropy = false;  // no fp32 copy of the logits is kept
  bool fp32_logits = false;  // ... and without that, their fp32 copy has a gradient of its own
                             // (PyTorch's cross-entropy; Megatron's works in place)
  bool causal_skip = true;   // the attention kernel skips the masked half
  Precision gradient_precision = Precision::fp32;  // of the accumulation buffer
  bool fused_accumulation = false;  // 16-bit gradients join their buffer inside the product, as
                                    // fp32 ones do (wgrad_gemm_accum_fp16, Transformer Engine)
  int expert_group = 0;  // tokens that are dispatched to experts together, by a product with the
                         // one-hot mask of their places (GShard); 0: rows are copied there
  bool narrow_saved_inputs = false;  // fp8 products keep their cast inputs (Transformer Engine)
  bool bf16_optimizer = false;  // bf16 runs shard as ZeRO-1 and accumulate fp32 gradients beside
                                // the bf16 ones (DeepSpeed's BF16_Optimizer)
  bool master_weights = true;   // the optimizer keeps fp32 parameters beside 16-bit ones
  bool fp32_shards = false;  // ZeRO-3 shards are the fp32 parameters themselves; 16 bits exist only
                             // gathered (FSDP)
  bool scatter_gather = true;  // pipeline transfers are split over the tensor ranks
  bool backward_tp_overlap =
      false;  // input-gradient collectives run beside the weight-gradient product
  bool embedding_all_reduce =
      true;                     // tied embedding gradients are summed between first and last stage
  bool zero_prefetch = true;    // ZeRO-3 gathers the next layer while this one computes
  bool zero_by_module = false;  // ZeRO-3 gathers and scatters each product's weights, not a layer's
  bool activation_offload = false;  // its ZeRO-3 recipes keep the activations of as many layers in
                                    // host memory as it takes to fit
  bool whole_in_pipeline = false;   // with pp > 1 ZeRO-3 keeps what it gathered and its gradients
                                    // whole, gathers and scatters once an iteration (FSDP2)
  bool whole_gradients = false;     // ZeRO-2 and 3 scatter no gradient before all are there (XLA
                                    // combines the collectives)
  bool zero_one_port = false;       // collectives of ZeRO-3 leave a node through one of its ports
  bool one_collective_queue = false;  // with tp > 1 the gradient reduction waits for the tensor
                                      // ranks' collectives instead of running beside computation
  int max_zero = 3;                   // highest ZeRO stage the framework offers
  int default_zero = 0;               // what its own recipes set where a plan says nothing
  bool default_sequence_parallel = false;  // with tp > 1
  int default_micro_batches = 0;           // a pipeline rank's, 0: the most that is good
  int default_stages = 0;                  // of a pipeline rank when interleaved; 0: likewise
  bool default_interleaved = false;        // its recipes interleave wherever the layers divide
  bool sequence_parallel = true;           // what else it offers
  bool selective_recompute = true;
  bool selective_half = false;  // "selective" keeps every second product or layer (torchtitan)
  bool interleaved = true;
  bool context_parallel = false;
  bool zero_bubble = false;      // schedules whose backward is split (arXiv:2401.10241)
  bool post_validation = false;  // their optimizer steps without waiting for the global gradient
                                 // norm, and validates afterwards (section 4 there)
  bool uneven_stages = false;    // layers need not divide: any contiguous partition into stages
  double elementwise_factor =
      1;  // memory-bound kernels take this many times the device's best: unfused, casting, apart
  double zero_slowdown = 1.1256;  // computation beside a layer's ZeRO-3 collectives takes so many
                                  // times as long: copies in and out of flat buffers among it
                                  // (without a figure of its own, overlap_slowdown)
  double attention_factor = 1;    // its fused attention kernel takes this many times the best one's
  Seconds kernel_launch;  // host time a kernel, where the framework costs more than the bare launch
  Seconds collective_wait;   // added to each exposed tensor-parallel collective and pipeline
                             // transfer: ranks do not arrive together
  Seconds micro_batch_host;  // host time a micro-batch and (virtual) stage: batches broadcast,
                             // losses collected, Python between the layers
  Seconds iteration_host;    // host time an iteration: loss scale, norms and counters read back
  Overlap overlap;
  Bytes context;             // CUDA and NCCL contexts, outside the allocator
  double fragmentation = 0;  // allocator reserve as a fraction of what is allocated
  ReportedMemory reported = ReportedMemory::device;
};

// A peak of the whole device as the framework's log would give it.
Bytes reported_peak(Bytes peak, const StackSpec& stack);

}  // namespace costmodel
