#include "planner/frameworks/trainer_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <utility>
#include <vector>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/path.hpp"
#include "planner/exchange/lines.hpp"
#include "planner/frameworks/file_settings.hpp"
#include "planner/frameworks/framework_words.hpp"
#include "planner/frameworks/launcher_words.hpp"

namespace planner {

using namespace costmodel;

namespace {

TrainerDefaults defaults_of(JobFormat format) {
  switch (format) {
    // LLaMA-Factory: src/llamafactory/hparams; it checkpoints unless
    // disable_gradient_checkpointing.
    case JobFormat::llama_factory:
      return {.sequence = 2048, .checkpointing = true, .adapter = "lora", .alpha = 0};
    // ms-swift: swift/arguments/tuner_args.py, swift/trainers/arguments.py.
    case JobFormat::ms_swift:
      return {.micro_batch = 1,
              .checkpointing = true,
              .adapter = "lora",
              .alpha = 32,
              .dropout = 0.05,
              .context = "ulysses"};
    case JobFormat::axolotl: return {.micro_batch = 1, .sequence = 512, .alpha = 0};
    // transformers' TrainingArguments; adapters as TRL's ModelConfig.
    default: return {.rank = 16, .alpha = 32, .dropout = 0.05, .double_quantization = false};
  }
}

// LLaMA-Factory's second format (src/llamafactory/v1/config): what it trains and shards with are
// maps of their own, and it trains everything unless peft_config is there.
bool holds_factory_v1(const std::string& text) {
  const auto any = [&](std::initializer_list<std::string_view> keys) {
    return std::ranges::any_of(keys, [&](std::string_view key) { return has_line(text, key); });
  };
  return any({"peft_config:", "dist_config:", "kernel_config:", "optim_config:", "quant_config:",
              "model_class:"}) &&
         any({"train_dataset:", "cutoff_len:", "micro_batch_size:"});
}

TrainerDefaults defaults_of(JobFormat format, const std::string& document) {
  if (format != JobFormat::llama_factory || !holds_factory_v1(document)) return defaults_of(format);
  return {.micro_batch = 1,
          .sequence = 2048,
          .checkpointing = true,
          .adapter = "full",
          .dropout = 0.05,
          .context = "ulysses"};
}

// TRL's own configurations are the Trainer's but for these (trl/trainer/base_config.py,
// sft_config.py, dpo_config.py); the prompts of those that sample have no limit.
TrainerDefaults defaults_of_trl(const std::string& method) {
  TrainerDefaults defaults = defaults_of(JobFormat::trainer);
  defaults.checkpointing = true;
  const bool samples = method == "grpo" || method == "rloo" || method == "ppo" || method == "gkd";
  defaults.sequence = samples ? 0 : 1024;
  return defaults;
}

// "fsdp_config.fsdp_offload_params" and "fsdp_config.offload_params" are the same.
std::string trainers_field(std::string field) {
  std::ranges::replace(field, '-', '_');
  if (const auto ours = framework_words("trainer").read_as(field); ours != field)
    return std::string(ours);
  // A map of DeepSpeed's in place of its file.
  if (constexpr std::string_view own = "deepspeed."; field.starts_with(own)) {
    const std::string inner = trainers_field(field.substr(own.size()));
    return field.ends_with(inner) ? field : inner;
  }
  constexpr std::string_view map = "fsdp_config.", prefix = "fsdp_";
  if (field.starts_with("fsdp_config.fsdp_")) field.erase(map.size(), prefix.size());
  // accelerate launch has the fields of the map as flags.
  for (const char* flag : {"fsdp_sharding_strategy", "fsdp_offload_params",
                           "fsdp_reshard_after_forward", "fsdp_activation_checkpointing"})
    if (field == flag) return "fsdp_config." + field.substr(prefix.size());
  return field;
}

constexpr std::array<std::string_view, 9> launched_verbs{"sft", "pt",   "rlhf", "train", "dpo",
                                                         "kto", "grpo", "rloo", "reward"};

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

// LLaMA-Factory's max_length is that of what it generates; cutoff_len is a sample's.
void name_generation(std::vector<SetField>& fields) {
  for (SetField& field : fields)
    if (field.name == "max_length") field.field = "generation_max_length";
}

// The settings of YAML in the Trainer's words.
std::vector<SetField> trainers_fields(std::vector<SetField> fields, JobFormat format) {
  for (SetField& field : fields) {
    field.name = field.field;
    // ms-swift's batch of a device; axolotl's of an update on one.
    if (format == JobFormat::axolotl && field.name == "batch_size") continue;
    field.field = trainers_field(field.field);
  }
  const auto maps = std::ranges::find_if(
      fields, [](const SetField& field) { return field.name.starts_with("deepspeed."); });
  // Without a word of it nothing is sharded (DeepSpeed, runtime/zero/config.py).
  if (maps != fields.end())
    fields.insert(fields.begin(), {"zero_stage", {"0"}, maps->mark, "", "zero_stage"});
  if (format == JobFormat::llama_factory) name_generation(fields);
  return fields;
}

// The last setting of a name, where it has one value.
const SetField* last_of(const std::vector<SetField>& fields, std::string_view name) {
  const SetField* last = nullptr;
  for (const SetField& set : fields)
    if (set.field == name && set.values.size() == 1) last = &set;
  return last;
}

// Of accelerate's --config_file and DeepSpeed's JSON, where they lie with the file that names
// them: before the settings of that file, which count where both have one. Of DeepSpeed's only the
// stage and where states are kept: the Trainer fills in the rest from its own.
void add_named_files(std::vector<SetField>& fields, const std::string& file) {
  std::vector<SetField> more;
  std::string from = file;
  if (const SetField* set = last_of(fields, "config_file")) {
    if (auto named = read_named(set->values.front(), file)) {
      more = trainers_fields(std::move(*named), JobFormat::accelerate);
      from = joined_path(folder_of(file), set->values.front());
      std::erase_if(fields, [](const SetField& field) { return field.field == "config_file"; });
    }
  }
  const SetField* deepspeed = last_of(fields, "deepspeed");
  if (deepspeed == nullptr) {
    deepspeed = last_of(more, "deepspeed");
  } else {
    from = file;
  }
  if (deepspeed != nullptr && deepspeed->values.front().ends_with(".json")) {
    if (auto named = read_named(deepspeed->values.front(), from)) {
      // Without a word of it nothing is sharded (DeepSpeed, runtime/zero/config.py).
      more.push_back({"zero_stage", {"0"}, deepspeed->mark, "", "zero_stage"});
      for (SetField& field : trainers_fields(std::move(*named), JobFormat::accelerate))
        if (field.field != field.name) more.push_back(std::move(field));
    }
  }
  fields.insert(fields.begin(), std::make_move_iterator(more.begin()),
                std::make_move_iterator(more.end()));
}

// "dpo" of "dpo", "run_dpo" and "dpo_lora"; empty: a name with no method of TRL's.
std::string method_in(const std::string& name) {
  for (const std::string_view method : {"dpo", "orpo", "kto", "cpo", "ppo", "grpo", "rloo", "gkd",
                                        "reward", "xpo", "nash_md", "sft"}) {
    const std::size_t at = name.find(method);
    const auto edge = [&](std::size_t c) {
      return c >= name.size() || std::isalpha(static_cast<unsigned char>(name[c])) == 0;
    };
    if (at != name.npos && (at == 0 || edge(at - 1)) && edge(at + method.size()))
      return std::string(method);
  }
  return "";
}

// What a program or a script of TRL is called after: "dpo" of trl/scripts/dpo.py.
std::string method_of(const ShellWords& command) {
  for (std::size_t i = 0; i < command.size(); ++i) {
    const std::string& word = command[i].text;
    const bool verb = i > 0 && command[i - 1].text == "trl";
    if (!verb && !word.ends_with(".py")) continue;
    if (std::string method = method_in(stem_of(word)); !method.empty()) return method;
  }
  return "";
}

// No setting of TRL's, nor of LLaMA-Factory's second format, names the method, which is the
// program's: files of them are called after it, or lie in a folder that is
// (recipes/smollm2/dpo/config.yaml).
std::string add_method_of_file(std::vector<SetField>& fields, const std::string& file) {
  std::string method = method_in(stem_of(file));
  if (method.empty()) method = method_in(file_name_of(folder_of(file)));
  if (!method.empty())
    fields.insert(fields.begin(), {"stage", {method}, {file, 0, 0}, "", "the file's name"});
  return method;
}

// Of TRL: called after a method, or with settings that the Trainer lacks. `file`: no command, whose
// program may have any.
bool is_of_trl(const std::string& method, const std::vector<SetField>& fields, bool file) {
  return !method.empty() || std::ranges::any_of(fields, [&](const SetField& field) {
    return field.name == "use_peft" ||
           (file && (field.name == "max_length" || field.name == "packing"));
  });
}

TrainerJob of_command(const std::string& text, const std::string& file) {
  const ShellScript script = read_shell(text, file);
  for (std::size_t at = 0; at < script.commands.size(); ++at) {
    const ShellWords& command = script.commands[at];
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
    std::vector<SetField> fields = flags_of(command);
    if (*format == JobFormat::llama_factory) name_generation(fields);
    const std::string method = method_of(command);
    const bool trl = *format == JobFormat::trainer && is_of_trl(method, fields, false);
    add_named_files(fields, file);
    if (!method.empty())
      fields.insert(fields.begin(), {"stage", {method}, command.front().mark, "", "stage"});
    TrainerJob job{*format,
                   trl ? defaults_of_trl(method) : defaults_of(*format),
                   {std::move(fields), framework_words("trainer").harmless}};
    Launched launched = launched_by(script, command);
    if (launched.world_size == 0) launched = launched_by_variables(script, at);
    job.devices = launched.world_size;
    if (launched.per_node > 0) job.nodes = launched.world_size / launched.per_node;
    // It starts one process a device where one of the variables asks for them (swift/cli/main.py).
    job.alone = command.front().text == "swift" && launched.visible;
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
  if (holds_factory_v1(text)) return JobFormat::llama_factory;
  if (is_yaml(text, {"finetuning_type:", "cutoff_len:"})) return JobFormat::llama_factory;
  if (is_yaml(text, {"tuner_type:", "train_type:"})) return JobFormat::ms_swift;
  if (is_yaml(text, {"model_name_or_path:", "per_device_train_batch_size:"}))
    return is_yaml(text, {"stage:", "template:"}) ? JobFormat::llama_factory : JobFormat::trainer;
  const bool json =
      text.starts_with('{') && text.find("\"per_device_train_batch_size\"") != text.npos;
  return json ? std::optional(JobFormat::trainer) : std::nullopt;
}

}  // namespace

std::vector<SetField> flags_of(const ShellWords& words) {
  std::vector<SetField> fields;
  bool module = false;  // -m NAME in place of a script
  for (const ShellWord& word : words) {
    if (std::exchange(module, word.text == "-m") || word.text == "-m") continue;
    if (word.text.starts_with("--")) {
      const std::size_t equals = std::min(word.text.find('='), word.text.size());
      std::string name = word.text.substr(2, equals - 2);
      fields.push_back({trainers_field(name), {}, word.mark, "", std::move(name)});
      if (equals < word.text.size()) fields.back().values = {word.text.substr(equals + 1)};
    } else if (!word.unknown.empty() && word.text.empty() && !fields.empty() &&
               !fields.back().values.empty()) {
      // Perhaps settings of its own: no value of one that has its value.
      fields.push_back({word.unknown, {}, word.mark, word.unknown, ""});
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
  return std::ranges::any_of(framework_words("trainer").harmless,
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
  std::vector<SetField> fields = trainers_fields(read_yaml(document, file), format);
  const bool second = holds_factory_v1(document);
  TrainerDefaults defaults = defaults_of(format, document);
  if (format == JobFormat::trainer || second) {
    const std::string method = add_method_of_file(fields, file);
    if (!second && is_of_trl(method, fields, true)) defaults = defaults_of_trl(method);
  }
  const SetField* quantizer = last_of(fields, "quant_config.name");
  const bool four = second && quantizer != nullptr && quantizer->values.front() == "bnb";
  // Which its bitsandbytes takes where no number is written (model_plugins/quantization.py).
  if (four && last_of(fields, "bits") == nullptr) fields.push_back({"bits", {"4"}, {}, "", ""});
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
  add_named_files(fields, file);
  return {format,
          defaults,
          {std::move(fields), framework_words("trainer").harmless},
          launched.world_size};
}

}  // namespace planner
