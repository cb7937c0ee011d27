// A scenario for each key of `plan`, in which the key makes another plan than its absence.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/costmodel/support/scenarios.hpp"

namespace plan_samples {

struct Sample {
  std::string key, value;
  std::string rest;    // of the plan
  std::string before;  // model, cluster and training
};

inline const std::string dense =
    "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 16}\n"
    "training: {global_batch: 64, sequence: 4096, stack: megatron-core-2026}\n";
inline const std::string sparse =
    "model: deepseek-v3\ncluster: {base: dgx-h100, devices: 256}\n"
    "training: {global_batch: 2048, sequence: 4096, stack: megatron-bridge}\n";
inline const std::string sparse_deepep =
    "model: deepseek-v3\ncluster: {base: dgx-h100, devices: 256}\n"
    "training: {global_batch: 2048, sequence: 4096, stack: {base: megatron-bridge, experts: "
    "{dispatcher: deepep, dispatcher_multiprocessors: 24}}}\n";
inline const std::string fsdp =
    "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 16}\n"
    "training: {global_batch: 64, sequence: 4096, stack: megatron-bridge}\n";
inline const std::string deepspeed =
    "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 16}\n"
    "training: {global_batch: 64, sequence: 4096, stack: deepspeed-2021}\n";
inline const std::string two_stacks =
    "model: t5-3b\ncluster: {base: dgx-a100, devices: 8}\n"
    "training: {global_batch: 64, sequence: 512, stack: megatron-core-2024}\n";
inline const std::string mixed =
    "model: llama-3-8b\n" + scenarios::mixed(8, 8) +
    "training: {global_batch: 64, sequence: 4096, stack: megatron-core-2026}\n";
inline const std::string zero_bubble =
    "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 16}\n"
    "training: {global_batch: 64, sequence: 4096, stack: zero-bubble-fork}\n";
inline const std::string experts = "tp: 1, pp: 2, dp: 128, ep: 64, vpp: 2, zero: 1, ";

inline const std::vector<Sample> all{
    {"tp", "2", "", dense},
    {"pp", "2", "", dense},
    {"dp", "8", "tp: 2, ", dense},
    {"cp", "2", "", dense},
    {"cp_comm", "a2a", "cp: 2, ", dense},
    {"ep", "64", "pp: 2, dp: 128, ", sparse},
    {"etp", "2", "tp: 2, dp: 128, ep: 64, sequence_parallel: true, ", sparse},
    {"dispatcher", "deepep", experts, sparse},
    {"dispatcher", "alltoall", experts, sparse_deepep},  // where the stack's is another
    {"dispatcher_multiprocessors", "0", experts, sparse_deepep},
    {"dispatcher_multiprocessors", "20", experts, sparse},
    {"expert_overlap", "true", experts, sparse},
    {"delayed_weight_gradient", "true", experts + "expert_overlap: true, ", sparse},
    {"shared_expert_overlap", "true", experts, sparse},
    {"vpp", "2", "pp: 4, ", dense},
    {"micro_batch", "2", "", dense},
    {"sequence_parallel", "true", "tp: 2, ", dense},
    {"schedule", "gpipe", "pp: 2, ", dense},
    {"micro_batch_group", "8", "pp: 4, vpp: 2, ", dense},
    {"in_flight_limit", "6", "pp: 4, schedule: zero-bubble-h2, ", zero_bubble},
    {"recompute", "full", "", dense},
    {"recompute", "{granularity: full, layers: 3}", "", dense},
    {"recompute", "{modules: [mlp, layernorm]}", "", dense},
    {"zero", "1", "", dense},
    {"dp_replicate", "2", "zero: 3, ", fsdp},
    {"outer_dp_sharding", "optim", "zero: 3, dp_replicate: 2, ", fsdp},
    {"zero_hpz_partition_size", "8", "zero: 3, ", deepspeed},
    {"zero_quantized_weights", "true", "zero: 3, ", deepspeed},
    {"zero_quantized_gradients", "true", "zero: 3, ", deepspeed},
    {"stage_layers", "[20, 12]", "pp: 2, ", dense},
    {"stage_layers", "9x2+7x2", "pp: 4, ", dense},
    {"split_rank", "3", "pp: 4, ", two_stacks},
    {"stages", "[{tp: 2, dp: 4, layers: 20, recompute: full}, {tp: 4, dp: 2, layers: 12, zero: 1}]",
     "", dense},
    {"replicas",
     "[{group: h100, tp: 2, micro_batches: 8}, {group: a100, tp: 4, micro_batches: 16, zero: 1}]",
     "micro_batch: 1, ", mixed},
    {"rank_order", "tp-cp-ep-pp-dp", "pp: 2, ", dense},
    {"offload", "none", "", dense},
    {"offload", "{optimizer: 0.5}", "zero: 1, ", dense},
    {"offload", "parameters", "zero: 3, ", deepspeed},
    {"offload", "{activations: {layers: 3}}", "zero: 1, ", dense},
    {"offload", "{optimizer: 1, parameters: 1, to: nvme, parameters_to: host}", "zero: 3, ",
     deepspeed},
    {"offload", "{activations: {modules: [core_attn, attn_proj]}}", "zero: 1, ", dense}};

inline costmodel::Scenario with(const Sample& sample) {
  return scenarios::read(
      sample.before + fmt::format("plan: {{{}{}: {}}}\n", sample.rest, sample.key, sample.value));
}
inline costmodel::Scenario without(const Sample& sample) {
  return scenarios::read(sample.before + fmt::format("plan: {{{}}}\n", sample.rest));
}

}  // namespace plan_samples
