// What is served: an engine with its constants, lengths and load of the requests, limits of a
// replica, and how its devices are laid out. Plain data.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "costmodel/base/error.hpp"
#include "costmodel/base/units.hpp"
#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/model/model_spec.hpp"
#include "costmodel/plan/length_spec.hpp"

namespace costmodel {

// Formats of the weights of linear layers; embedding, output projection, router and norms keep 16
// bits, and in mxfp4 all but the experts (gpt-oss). int8 has 8-bit activations as well (W8A8),
// nvfp4 4-bit ones; int4 is expanded to 16 bits in the product's kernel (W4A16), and so are mxfp4,
// and fp8 and nvfp4 on devices without such products. fp32: everything in 32 bits, as on CPUs.
enum class WeightFormat { bf16, fp16, fp8, int8, int4, nvfp4, mxfp4, fp32 };
inline constexpr std::array<std::string_view, 8> weight_format_names{
    "bf16", "fp16", "fp8", "int8", "int4", "nvfp4", "mxfp4", "fp32"};
// Formats of the cached keys and values.
enum class CacheFormat { bf16, fp16, fp8, int8, fp32 };
inline constexpr std::array<std::string_view, 5> cache_format_names{"bf16", "fp16", "fp8", "int8",
                                                                    "fp32"};

constexpr std::string_view to_string(WeightFormat f) {
  return weight_format_names[static_cast<std::size_t>(f)];
}
// Bytes of a weight with its scales: int4 has a 16-bit scale and zero for 128 weights (AWQ, Lin et
// al. 2023, arXiv:2306.00978, group size 128), nvfp4 an 8-bit scale for 16 (NVIDIA Transformer
// Engine), mxfp4 one for 32 (OCP Microscaling Formats 1.0); scales by channel or block of 8-bit
// ones are left out.
inline constexpr std::array<double, weight_format_names.size()> weight_bytes{
    2, 2, 1, 1, 0.5 + 4.0 / 128, 0.5 + 1.0 / 16, 0.5 + 1.0 / 32, 4};
inline constexpr std::array<double, cache_format_names.size()> cache_bytes{2, 2, 1, 1, 4};
constexpr double bytes_of(WeightFormat f) { return weight_bytes[static_cast<std::size_t>(f)]; }
constexpr double bytes_of(CacheFormat f) { return cache_bytes[static_cast<std::size_t>(f)]; }
// Bytes of an element of hidden states, and of the weights that are not quantised.
constexpr double element_bytes(WeightFormat f) { return f == WeightFormat::fp32 ? 4 : 2; }

// Limits of a replica that an engine has unless a scenario says otherwise.
struct ServingLimits {
  std::int64_t max_num_seqs = 256;             // requests that run at the same time
  std::int64_t max_num_batched_tokens = 8192;  // tokens of a step that prefills
  bool chunked_prefill = true;                 // prompts are cut, and decode runs beside them
  double gpu_memory_utilization = 0.9;         // of the device's memory that a replica uses
  std::int64_t block_size = 16;                // tokens of a block of the cache
};

// What an engine's kernels and its host take beyond the device's own roofline. configs/engines has
// the prior of each constant, configs/serving_fit.yaml what published measurements make of it.
struct EngineConstants {
  Seconds kernel{2e-6};         // each kernel adds: start, tail and gap, replayed from a graph
  double memory_share = 0.85;   // of the device's bandwidth, that reading weights reaches
  double cache_share = 0.8;     // ... and reading keys and values
  double product_factor = 1;    // rate of large products relative to the device's
  double expert_factor = 1;     // rate of the products of experts relative to others'
  Seconds expert_layer{3e-5};   // a layer of experts adds: choice, sorting, sums
  Seconds eager_kernel;         // of the host: to launch a kernel of a step with prompts
  Seconds host_step{2e-3};      // scheduling, sampling and the answer of a step
  Seconds host_sequence{2e-5};  // ... of each sequence in it
  Seconds request{5e-3};  // of a request outside steps: parsing, tokens, the way to the client
};

// What gpu_memory_utilization is a share of. device: of what the device has, from which weights,
// activations and the engine are taken too (vLLM, gpu_memory_utilization); pool: of what is free
// before loading, for weights and cache alone (SGLang, mem_fraction_static); free: of what they all
// leave (TensorRT-LLM, kv_cache_free_gpu_memory_fraction).
enum class MemoryShare { device, pool, free };
inline constexpr std::array<std::string_view, 3> memory_share_names{"device", "pool", "free"};

// An engine of a version.
struct EngineSpec {
  std::string name, title;
  std::string family;                // "vllm", "sglang", "tensorrt-llm", ...
  EngineConstants constants, prior;  // in effect, and as configs/engines has them
  bool host_overlap = false;   // the host prepares a step while the device does the one before
  double grouped_cache = 1;    // rate of reading the cache of grouped heads relative to cache_share
  Seconds custom_all_reduce;   // one-shot all-reduce of the engine's own; 0: none
  Bytes custom_most{8388608};  // ... up to so many bytes
  // Between stages travel the hidden states and, in engines that add it in the next norm, the
  // residual; cut over the tensor ranks, which gather it, or whole from each of them.
  std::int64_t stage_tensors = 2;
  bool splits_transfers = true;
  MemoryShare memory_share = MemoryShare::device;
  Bytes context{2.5e9};          // of a device outside weights, cache and activations
  Bytes tensor_context;          // the same with tp 2 and more; 0: as one device's
  double server_share = 0;       // of host_step and host_sequence, of a server in its process
  double logit_bytes = 10;       // of a request and word of the vocabulary, at the peak of sampling
  bool keeps_workspace = false;  // the experts' buffers stay while it samples
  bool holds_longest = false;    // starts only where its cache holds a request of max_model_len
  bool reserves_output = false;  // a request is admitted when its whole output has room
  ServingLimits limits;
  std::optional<ServingLimits> latent_limits;  // of models with latent attention, where they differ
  std::optional<ServingLimits> small_limits;   // of devices that are not large (engine.hpp)
};

// Bounds on the mean; 0: none.
struct LatencyBound {
  Seconds ttft, tpot, e2e;
  bool any() const { return ttft.value > 0 || tpot.value > 0 || e2e.value > 0; }
};

// What else a plan is to reach; 0: nothing. Dollars are the cluster's price times the devices.
struct ServingGoal {
  double output_per_s = 0;     // output tokens of all replicas, at least
  double usd_per_hour = 0;     // of all devices, at most
  double usd_per_million = 0;  // of a million output tokens, at most
  bool any() const { return output_per_s > 0 || usd_per_hour > 0 || usd_per_million > 0; }
};

struct ServingSpec {
  EngineSpec engine;
  LengthSpec input, output;
  WeightFormat weights = WeightFormat::bf16;
  bool weights_open = false;  // `auto`: plan chooses
  CacheFormat kv_cache = CacheFormat::bf16;
  // The load: so many requests in flight over all replicas, or requests a second (Poisson), or
  // neither: `requests` all at once.
  std::int64_t concurrency = 0;
  double arrival_rate = 0;
  std::int64_t requests = 0;
  ServingLimits limits;
  bool seqs_open = false, tokens_open = false;  // max_num_seqs, max_num_batched_tokens not written
  std::int64_t max_model_len = 0;               // prompt and answer of a request, at most
  bool length_open = false;                     // ... not written
  bool length_usual = false;                    // max_model_len is not written: the model's own
  Bytes swap_space;                             // of host memory, for preempted requests
  Bytes cpu_offload;                            // of a device's weights, kept in host memory
  bool cuda_graphs = true;      // of steps that only decode; else each kernel is launched
  bool offline = false;         // no server stands before the engine
  bool decode_only = false;     // prompts are prefilled on devices that are not counted
  double prefix_hit_share = 0;  // of prompt tokens whose keys are cached already
  LatencyBound bound;
  ServingGoal goal;
};

// A replica has tp x pp devices; dp replicas. ep divides tp: a
// device has 1/ep of the experts, and of each ep/tp; tp x dp: the experts are spread over all
// replicas, and attention is data-parallel.
struct ServingSizes {
  int tp = 1, pp = 1, ep = 1, dp = 1;
  std::int64_t replica() const { return std::int64_t{tp} * pp; }
  std::int64_t devices() const { return replica() * dp; }
  bool spreads_experts() const { return ep > tp; }
  bool operator==(const ServingSizes&) const = default;
};

// Prompts on devices of their own, whose keys and values then travel to those that decode.
struct Disaggregation {
  ServingSizes prefill, decode;
  std::int64_t devices() const { return prefill.devices() + decode.devices(); }
  bool operator==(const Disaggregation&) const = default;
};

struct ServingPlan {
  std::optional<int> tp, pp, ep, dp;  // as written; none of the first three: `plan` searches
  std::optional<Disaggregation> disaggregation;
  bool together = false;  // `disaggregation: none`: plan leaves such plans out
  Mark mark;
  Mark tp_mark, pp_mark, ep_mark, dp_mark;
};

struct ServingScenario {
  std::string name, file;
  std::string model_text, cluster_text;
  ModelSpec model;
  ClusterSpec cluster;
  ServingSpec serving;
  ServingPlan plan;
  // Places for what only the estimate can refuse.
  Mark input_mark, batch_mark, bound_mark;
};

}  // namespace costmodel
