#include "planner/frameworks/torchtitan_fields.hpp"

#include <array>
#include <utility>

namespace planner {

namespace {

// Sections and settings that change neither the time nor the memory of an iteration.
constexpr std::array<std::string_view, 33> harmless_settings{
    "job.",
    "profiling.",
    "metrics.",
    "lr_scheduler.",
    "checkpoint.",
    "comm.",
    "validation.",
    "memory_estimation.",
    "fault_tolerance.",
    "experimental.custom_",
    "model.hf_assets_path",
    "model.tokenizer_path",
    "model.print_after_conversion",
    "optimizer.lr",
    "optimizer.beta",
    "optimizer.eps",
    "optimizer.weight_decay",
    "optimizer.implementation",
    "training.dataset",
    "training.dataloader.",
    "training.max_norm",
    "training.steps",
    "training.gc_",
    "training.seed",
    "training.deterministic",
    "debug.",
    "parallelism.context_parallel_load_balancer",
    "parallelism.save_parallelism_file",
    "parallelism.pipeline_parallel_expert_parallel_overlap",
    "activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns",
    "activation_checkpoint.early_stop",
    "activation_checkpoint.determinism_check",
    "compile.backend"};

// Names of 2024, before version 0.1, and what they became.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> older_names{
    {{"training.batch_size", "training.local_batch_size"},
     {"training.tensor_parallel_degree", "parallelism.tensor_parallel_degree"},
     {"training.data_parallel_shard_degree", "parallelism.data_parallel_shard_degree"},
     {"training.data_parallel_replicate_degree", "parallelism.data_parallel_replicate_degree"},
     {"experimental.context_parallel_degree", "parallelism.context_parallel_degree"},
     {"experimental.pipeline_parallel_degree", "parallelism.pipeline_parallel_degree"},
     {"experimental.pipeline_parallel_schedule", "parallelism.pipeline_parallel_schedule"},
     {"experimental.enable_async_tensor_parallel", "parallelism.enable_async_tensor_parallel"},
     {"training.compile", "compile.enable"}}};

// Sections of 2025, and what they became.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> older_sections{
    {{"float8.", "quantize.linear.float8."},
     {"quantize.dense.", "quantize.linear."},
     {"quantize.moe.", "quantize.grouped_mm."}}};

std::vector<SetField> with_names_of_today(std::vector<SetField> fields) {
  for (auto& set : fields) {
    for (const auto& [old, today] : older_names)
      if (set.field == old) set.field = today;
    for (const auto& [old, today] : older_sections)
      if (set.field.starts_with(old)) set.field.replace(0, old.size(), today);
  }
  return fields;
}

}  // namespace

TorchtitanFields::TorchtitanFields(std::vector<SetField> fields)
    : SettingFields(with_names_of_today(std::move(fields)), harmless_settings) {}

}  // namespace planner
