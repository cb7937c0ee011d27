#include "planner/frameworks/torchtitan_fields.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"

namespace planner {

using namespace costmodel;

namespace {

constexpr std::int64_t most = 1'000'000'000'000;  // larger than any size, and products stay whole

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

bool is_harmless(std::string_view field) {
  return std::ranges::any_of(harmless_settings,
                             [&](std::string_view begin) { return field.starts_with(begin); });
}

std::string value_of(const SetField& set) {
  return set.values.empty() ? set.unknown : fmt::format("{}", fmt::join(set.values, ", "));
}

std::string text_of(const SetField& set) {
  return shortened(fmt::format("{} = {}", set.field, value_of(set)), 100);
}

}  // namespace

TorchtitanFields::TorchtitanFields(std::vector<SetField> fields) : fields_(std::move(fields)) {
  for (auto& set : fields_) {
    for (const auto& [old, today] : older_names)
      if (set.field == old) set.field = today;
    for (const auto& [old, today] : older_sections)
      if (set.field.starts_with(old)) set.field.replace(0, old.size(), today);
  }
}

bool TorchtitanFields::has(std::string_view field) const {
  return std::ranges::any_of(fields_, [&](const SetField& set) { return set.field == field; });
}

const SetField* TorchtitanFields::find(std::string_view field) {
  asked_.insert(std::string(field));
  const SetField* found = nullptr;
  for (const auto& set : fields_)
    if (set.field == field) found = &set;
  return found;
}

std::string TorchtitanFields::word(std::string_view field, std::string_view otherwise) {
  const SetField* set = find(field);
  if (set == nullptr) return std::string(otherwise);
  if (!set->unknown.empty() || set->values.size() != 1) {
    throw ConfigError(set->mark,
                      fmt::format("{} is no value that is read here", quote(text_of(*set))),
                      "write the value itself, without a name or a call");
  }
  return set->values.front();
}

std::int64_t TorchtitanFields::number(std::string_view field, std::int64_t otherwise,
                                      std::int64_t least) {
  const SetField* set = find(field);
  if (set == nullptr) return otherwise;
  const std::string text = word(field, "");
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || value < least || value > most || (least < 0 && value == 0)) {
    throw ConfigError(
        set->mark, fmt::format("{} is no whole number from 1", quote(text_of(*set))),
        least < 0 ? "write 1 or more, or -1 for what is left" : "write 1 or more, or leave it out");
  }
  return value;
}

bool TorchtitanFields::flag(std::string_view field, bool otherwise) {
  const SetField* set = find(field);
  if (set == nullptr) return otherwise;
  const std::string text = word(field, "");
  if (text != "true" && text != "false") {
    throw ConfigError(set->mark, fmt::format("{} is neither true nor false", quote(text_of(*set))),
                      "write true or false");
  }
  return text == "true";
}

std::vector<std::string> TorchtitanFields::rest() const {
  std::vector<std::string> list;
  for (const auto& set : fields_) {
    const std::string value = value_of(set);
    if (asked_.contains(set.field) || is_harmless(set.field)) continue;
    if (value == "false" || value == "null" || value.empty()) continue;
    list.push_back(text_of(set));
  }
  return list;
}

std::string TorchtitanFields::written(std::string_view field) const {
  std::string text;
  for (const auto& set : fields_)
    if (set.field == field) text = text_of(set);
  return text;
}

}  // namespace planner
