#include "planner/frameworks/trainer_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "planner/exchange/lines.hpp"
#include "planner/frameworks/file_settings.hpp"
#include "planner/frameworks/launcher_words.hpp"

namespace planner {

using namespace costmodel;

namespace {

using Rename = std::pair<std::string_view, std::string_view>;

// Of every dialect; names that only one of them has cannot be mistaken in another.
constexpr std::array renames{
    // axolotl, src/axolotl/utils/schemas
    Rename{"base_model", "model_name_or_path"}, Rename{"sequence_len", "max_length"},
    Rename{"micro_batch_size", "per_device_train_batch_size"}, Rename{"sample_packing", "packing"},
    Rename{"optimizer", "optim"}, Rename{"tensor_parallel_size", "tp_size"},
    Rename{"context_parallel_size", "cp_size"}, Rename{"sequence_parallel_degree", "cp_size"},
    Rename{"eager_attention", "eager"},
    Rename{"bnb_config_kwargs.bnb_4bit_use_double_quant", "double_quantization"},
    // LLaMA-Factory, src/llamafactory/hparams
    Rename{"cutoff_len", "max_length"}, Rename{"finetuning_type", "adapter"},
    Rename{"lora_rank", "lora_r"}, Rename{"lora_target", "lora_target_modules"},
    Rename{"quantization_bit", "bits"}, Rename{"flash_attn", "attn_implementation"},
    Rename{"neat_packing", "packing"},
    // ms-swift, swift/arguments
    Rename{"model", "model_name_or_path"}, Rename{"model_id_or_path", "model_name_or_path"},
    Rename{"tuner_type", "adapter"}, Rename{"train_type", "adapter"}, Rename{"sft_type", "adapter"},
    Rename{"target_modules", "lora_target_modules"}, Rename{"quant_bits", "bits"},
    Rename{"attn_impl", "attn_implementation"}, Rename{"batch_size", "per_device_train_batch_size"},
    Rename{"sequence_parallel_size", "cp_size"},
    // transformers and TRL
    Rename{"max_seq_length", "max_length"}, Rename{"block_size", "max_length"},
    Rename{"model_max_length", "max_length"}, Rename{"lora_target_module", "lora_target_modules"},
    Rename{"dtype", "torch_dtype"}, Rename{"use_bnb_nested_quant", "double_quantization"},
    // accelerate, parallelism_config and deepspeed_config
    Rename{"parallelism_config.parallelism_config_tp_size", "tp_size"},
    Rename{"parallelism_config.parallelism_config_cp_size", "cp_size"},
    Rename{"parallelism_config.parallelism_config_sp_size", "sp_size"},
    Rename{"parallelism_config.parallelism_config_dp_shard_size", "dp_shard_size"},
    Rename{"parallelism_config.parallelism_config_dp_replicate_size", "dp_replicate_size"},
    Rename{"deepspeed_config.gradient_accumulation_steps", "gradient_accumulation_steps"},
    Rename{"deepspeed_config.zero_stage", "zero_stage"},
    Rename{"deepspeed_config.offload_optimizer_device", "offload_optimizer_device"},
    Rename{"deepspeed_config.offload_param_device", "offload_param_device"},
    Rename{"deepspeed_config.deepspeed_config_file", "deepspeed"}};

// What settings begin with that change neither the time nor the memory of an iteration.
constexpr std::string_view harmless_words =
    "adam_ additional_config auto_find auto_resume bench_ chat_template compute_environment "
    "config_file cosine_ custom_register data_seed data_shared dataloader dataset ddp debug "
    "deepspeed_config. default_system description do_eval do_train downcast_bf16 downsample "
    "dpo_ dry_run ds_config early_stopping ema_ enable_cpu_affinity enable_thinking eval "
    "exp_name fp16_opt_level fsdp_config.auto_wrap fsdp_config.backward_prefetch "
    "fsdp_config.cpu_ram fsdp_config.final_state fsdp_config.forward_prefetch "
    "fsdp_config.limit_all_gathers fsdp_config.state_dict fsdp_config.sync_module "
    "fsdp_config.transformer_layer fsdp_config.use_orig fsdp_config.version fsdp_config.xla "
    "fsdp_transformer_layer fsdp_version generation_ gpu_ids gradient_checkpointing_kwargs "
    "greater_is_better group_by_length half_precision_backend hub_ include_num_input "
    "include_tokens is_llama label_smoothing learning_rate load_best load_from_cache local_rank "
    "log_ logging_ lora_fan_in lora_model_dir loss_type loss_watchdog lr_ machine_rank main_ "
    "master_ max_grad_norm max_new max_samples max_steps megatron_lm_config. metric min_lr "
    "mlflow model_author model_name model_revision model_type neftune nnodes node_rank nproc "
    "num_epochs num_gpus num_labels num_nodes num_train_epochs num_workers output_dir overwrite "
    "pad_to_sequence pad_token per_device_eval plot_loss predict preprocessing project "
    "push_to_hub rdzv remove_unused report_to resume rl_beta run_name same_network save seed "
    "shuffle special_tokens split_dataset streaming strict swanlab system template tf32 "
    "tokenizer tokens tpu_ train_dataset train_on trust_remote use_cpu use_fast_tok val_ wandb "
    "warmup weight_decay xformers_ zero3_";

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

std::span<const std::string_view> trainer_harmless() {
  static const std::vector<std::string_view> words = split(harmless_words);
  return words;
}

TrainerDefaults defaults_of(JobFormat format) {
  switch (format) {
    // LLaMA-Factory: src/llamafactory/hparams; it checkpoints unless
    // disable_gradient_checkpointing.
    case JobFormat::llama_factory:
      return {.sequence = 2048, .checkpointing = true, .adapter = "lora", .alpha = 0};
    // ms-swift: swift/arguments/tuner_args.py, swift/trainers/arguments.py.
    case JobFormat::ms_swift:
      return {
          .micro_batch = 1, .checkpointing = true, .adapter = "lora", .alpha = 32, .dropout = 0.05};
    case JobFormat::axolotl: return {.micro_batch = 1, .sequence = 512, .alpha = 0};
    // transformers' TrainingArguments; adapters as TRL's ModelConfig.
    default: return {.rank = 16, .alpha = 32, .dropout = 0.05, .double_quantization = false};
  }
}

// "fsdp_config.fsdp_offload_params" and "fsdp_config.offload_params" are the same.
std::string trainers_field(std::string field) {
  std::ranges::replace(field, '-', '_');
  for (const auto& [theirs, ours] : renames)
    if (field == theirs) return std::string(ours);
  constexpr std::string_view map = "fsdp_config.", prefix = "fsdp_";
  if (field.starts_with("fsdp_config.fsdp_")) field.erase(map.size(), prefix.size());
  // accelerate launch has the fields of the map as flags.
  for (const char* flag : {"fsdp_sharding_strategy", "fsdp_offload_params",
                           "fsdp_reshard_after_forward", "fsdp_activation_checkpointing"})
    if (field == flag) return "fsdp_config." + field.substr(prefix.size());
  return field;
}

constexpr std::array<std::string_view, 4> launched_verbs{"sft", "pt", "rlhf", "train"};

bool ends_with_any(std::string_view text, std::initializer_list<std::string_view> ends) {
  return std::ranges::any_of(ends, [&](std::string_view end) { return text.ends_with(end); });
}

// The program that a command starts: where its name stands; none for a command that trains nothing.
std::optional<JobFormat> format_of_command(const ShellWords& words) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string &word = words[i].text, &next = words[i + 1].text;
    const bool verb = std::ranges::find(launched_verbs, next) != launched_verbs.end();
    if (word == "llamafactory-cli" && verb) return JobFormat::llama_factory;
    if (word == "swift" && verb) return JobFormat::ms_swift;
    if (word == "trl" && verb) return JobFormat::trainer;
  }
  const auto has = [&](std::string_view flag) {
    return std::ranges::any_of(words, [&](const ShellWord& word) {
      return word.text == flag || word.text.starts_with(std::string(flag) + "=");
    });
  };
  const bool trains = has("--per_device_train_batch_size") || has("--model_name_or_path");
  const bool swift = std::ranges::any_of(words, [](const ShellWord& word) {
    return word.text.find("swift/cli/") != std::string::npos;
  });
  if (swift && has("--model")) return JobFormat::ms_swift;
  if (!trains) return std::nullopt;
  return has("--finetuning_type") || has("--cutoff_len") ? JobFormat::llama_factory
                                                         : JobFormat::trainer;
}

TrainerJob of_command(const std::string& text, const std::string& file) {
  const ShellScript script = read_shell(text, file);
  for (const ShellWords& command : script.commands) {
    const auto format = format_of_command(command);
    if (!format) continue;
    for (const ShellWord& word : command) {
      if (!ends_with_any(word.text, {".yaml", ".yml", ".json"}) || &word == &command.front())
        continue;
      const ShellWord& before = *(&word - 1);
      if (std::ranges::find(launched_verbs, before.text) == launched_verbs.end()) continue;
      throw ConfigError(word.mark,
                        fmt::format("the settings are in {}", quote(shortened(word.text))),
                        "give that file");
    }
    TrainerJob job{*format, defaults_of(*format), {flags_of(command), trainer_harmless()}};
    Launched launched = launched_by(script, command);
    if (launched.world_size == 0) launched = launched_by_variables(script);
    job.devices = launched.world_size;
    return job;
  }
  throw ConfigError({file, 0, 0}, "has no command that trains", "give the script that does");
}

bool is_yaml(const std::string& text, std::initializer_list<std::string_view> keys) {
  return std::ranges::any_of(keys, [&](std::string_view key) { return has_line(text, key); });
}

std::optional<JobFormat> yaml_format(const std::string& text) {
  if (is_yaml(text, {"distributed_type:", "compute_environment:"})) return JobFormat::accelerate;
  if (has_line(text, "base_model:")) return JobFormat::axolotl;
  if (is_yaml(text, {"finetuning_type:", "cutoff_len:"})) return JobFormat::llama_factory;
  if (is_yaml(text, {"model_name_or_path:", "per_device_train_batch_size:"}))
    return is_yaml(text, {"stage:", "template:"}) ? JobFormat::llama_factory : JobFormat::trainer;
  return std::nullopt;
}

}  // namespace

std::vector<SetField> flags_of(const ShellWords& words) {
  std::vector<SetField> fields;
  for (const ShellWord& word : words) {
    if (word.text.starts_with("--")) {
      const std::size_t equals = std::min(word.text.find('='), word.text.size());
      std::string name = word.text.substr(2, equals - 2);
      fields.push_back({trainers_field(name), {}, word.mark, "", std::move(name)});
      if (equals < word.text.size()) fields.back().values = {word.text.substr(equals + 1)};
    } else if (!fields.empty() && word.text.ends_with(".py")) {
      continue;  // the script that a launcher starts
    } else if (!fields.empty()) {
      fields.back().values.push_back(word.text);
    }
    if (!fields.empty() && !word.unknown.empty()) fields.back().unknown = word.unknown;
  }
  for (SetField& field : fields)
    if (field.values.empty() && field.unknown.empty()) field.values = {"true"};
  return fields;
}

bool is_harmless_to_trainer(std::string_view name) {
  return std::ranges::any_of(trainer_harmless(),
                             [&](std::string_view word) { return name.starts_with(word); });
}

std::optional<JobFormat> trainer_format(const std::string& text) {
  if (const auto format = yaml_format(here_document(text, "YAML"))) return format;
  const auto holds = [&](const char* word) { return text.find(word) != std::string::npos; };
  if (holds("--per_device_train_batch_size") || holds("--model_name_or_path") ||
      holds("llamafactory-cli train") || holds("swift sft") || holds("swift pt") ||
      holds("swift rlhf") || holds("swift/cli/")) {
    try {
      const ShellScript script = read_shell(text, "");
      for (const ShellWords& command : script.commands)
        if (const auto format = format_of_command(command)) return format;
    } catch (const ConfigError&) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

TrainerJob read_trainer_job(const std::string& text, const std::string& file, JobFormat format) {
  const std::string document = here_document(text, "YAML");
  if (!yaml_format(document)) return of_command(text, file);
  std::vector<SetField> fields = read_yaml(document, file);
  for (SetField& field : fields) {
    field.name = field.field;
    // ms-swift's batch of a device; axolotl's of an update on one.
    if (format == JobFormat::axolotl && field.name == "batch_size") continue;
    field.field = trainers_field(field.field);
  }
  Launched launched;
  if (holds_document(text, "YAML")) {  // a script, whose command has further arguments
    const ShellScript script = read_shell(text, file);
    for (const ShellWords& command : script.commands) {
      const auto more = flags_of(command);
      const bool starts = std::ranges::any_of(command, [](const ShellWord& word) {
        return word.text == "torchrun" || word.text == "accelerate";
      });
      if (!starts) continue;
      launched = launched_by(script, command);
      fields.insert(fields.end(), more.begin(), more.end());
    }
  }
  return {
      format, defaults_of(format), {std::move(fields), trainer_harmless()}, launched.world_size};
}

}  // namespace planner
