#include "planner/frameworks/read_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/input_file.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/config/yaml.hpp"
#include "planner/exchange/lines.hpp"
#include "planner/exchange/python_recipe.hpp"
#include "planner/frameworks/argument_dialects.hpp"
#include "planner/frameworks/import_megatron.hpp"
#include "planner/frameworks/import_nanotron.hpp"
#include "planner/frameworks/import_neox.hpp"
#include "planner/frameworks/import_overrides.hpp"
#include "planner/frameworks/import_slime.hpp"
#include "planner/frameworks/import_torchtitan.hpp"
#include "planner/frameworks/import_trainer.hpp"
#include "planner/frameworks/import_verl.hpp"
#include "planner/frameworks/json_import_deepspeed.hpp"
#include "planner/frameworks/launcher.hpp"
#include "planner/frameworks/megatron_log.hpp"
#include "planner/frameworks/megatron_script.hpp"
#include "planner/frameworks/trainer_words.hpp"

namespace planner {

using namespace costmodel;

namespace {

// The path that a symbolic link's text is; empty: other text.
std::string link_in(const std::string& text) {
  const std::string word = text.substr(0, text.find_last_not_of(" \r\n") + 1);
  const bool path = word.ends_with(".sh") || word.ends_with(".yaml") || word.ends_with(".py");
  return path && word.find_first_of(" \t\r\n") == std::string::npos ? word : "";
}

// A scenario as JSON writes it, which is YAML too.
bool holds_json_scenario(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const auto has = [&](std::string_view key) { return text.find(key) != std::string::npos; };
  return first != std::string::npos && text[first] == '{' && has("\"model\"") &&
         (has("\"training\"") || has("\"plan\""));
}

// The program whose YAML has a key `model` too, as a scenario has; "" for other texts.
std::string_view other_program(const std::string& text) {
  if (!has_line(text, "model:")) return "";
  if (text.find("_component_: torchtune.") != std::string::npos) return "torchtune";
  if (has_line(text, "step_scheduler:")) return "NeMo Automodel";
  return has_line(text, "train_loader:") ? "llm-foundry" : "";
}

JobFormat format_of_text(const std::string& text, const std::string& file) {
  if (const auto other = other_program(text); !other.empty()) {
    throw ConfigError(
        {file, 0, 0}, fmt::format("looks like {}'s YAML, which is not read", other),
        "write a scenario with its model, batch and sizes (see `shardplan list keys`)");
  }
  if (holds_megatron_log(text)) return JobFormat::megatron;
  if (holds_slime(text) && !file.ends_with(".py")) return JobFormat::slime;
  if (holds_nemo_yaml(text)) return JobFormat::nemo;
  if (holds_neox(text)) return JobFormat::gpt_neox;
  if (holds_deepspeed(text)) return JobFormat::deepspeed;
  if (holds_nanotron(text)) return JobFormat::nanotron;
  if (holds_verl(text) && !file.ends_with(".py")) return JobFormat::verl;
  if (holds_swift_megatron(text)) return JobFormat::ms_swift;
  if (const auto trainer = trainer_format(text)) return *trainer;
  if (holds_torchtitan(text)) return JobFormat::torchtitan;
  if (holds_json_scenario(text)) return JobFormat::scenario;
  const bool scenario = has_line(text, "model:") || has_line(text, "training:");
  if (scenario && has_line(text, "plan:")) return JobFormat::scenario;
  // Python files name flags in their help.
  if (holds_megatron_flags(text) && !file.ends_with(".py")) return JobFormat::megatron;
  if (scenario) return JobFormat::scenario;
  if (holds_nemo_overrides(text)) return JobFormat::nemo;
  if (holds_bridge_overrides(text)) return JobFormat::bridge;
  if (holds_megatron_flags(text)) return JobFormat::megatron;
  if (const std::string name = link_in(text); !name.empty()) {
    throw ConfigError({file, 0, 0},
                      fmt::format("holds nothing but the name {}, as a symbolic link that was "
                                  "fetched as text",
                                  shortened(name)),
                      "give that file");
  }
  if (file.ends_with(".yaml") || file.ends_with(".yml")) parse_yaml(text, file);  // or its fault
  throw ConfigError(
      {file, 0, 0}, "is no description of a job that is known here",
      "known: a scenario, a launch script, argument list or log of Megatron-LM, overrides "
      "of Megatron-Bridge or NeMo, a ds_config.json, a TOML or Python configuration of torchtitan, "
      "YAML of accelerate, axolotl, LLaMA-Factory, TRL, nanotron or GPT-NeoX, and commands of "
      "LLaMA-Factory, ms-swift, TRL, the Trainer, verl and slime; of serving, `import vllm FILE` "
      "and `import sglang FILE`");
}

// The text, or the script that it brings to Kubernetes.
std::string script_in(const std::string& file) {
  const std::string text = read_file(file, measurement_limits);
  return script_of_job(text, file).value_or(text);
}

// A file that names a flag or two is no job: its scenario would hold what nobody wrote.
void require_half(const ImportedJob& job, const std::string& file) {
  constexpr std::array<std::string_view, 7> needed{
      "model.layers",      "model.layer_pattern", "model.hidden",         "model.vocab",
      "training.sequence", "plan.micro_batch",    "training.global_batch"};
  std::string missing;
  std::size_t count = 0;
  for (const auto& key : job.missing) {
    if (std::ranges::find(needed, key.key) == needed.end()) continue;
    ++count;
    missing += (missing.empty() ? "" : ", ") + key.key;
  }
  if (2 * count > needed.size()) {
    throw ConfigError({file, 0, 0},
                      fmt::format("holds too little of a job: {} are not there", missing),
                      "give the script that starts the training, or its log");
  }
}

}  // namespace

bool is_of_other_program(const std::string& file) {
  return !other_program(read_file(file, measurement_limits)).empty();
}

JobFormat format_of(const std::string& file) { return format_of_text(script_in(file), file); }

ImportedJob read_job(const std::string& file, const std::string& recipe) {
  const bool python = file.ends_with(".py");
  if (!python && !recipe.empty())
    throw ConfigError({file, 0, 0}, "is no Python file: it has no recipes", "leave --recipe out");
  std::string chosen;
  const std::string all = script_in(file),
                    text = python ? python_recipe(all, file, recipe, &chosen) : all;
  const JobFormat format = format_of_text(all, file);
  if (format == JobFormat::deepspeed) return import_deepspeed(text, file);
  if (format == JobFormat::nemo && holds_nemo_yaml(text)) return import_nemo_yaml(text, file);
  if (format == JobFormat::ms_swift && holds_swift_megatron(text))
    return import_swift_megatron(text, file);
  if (format == JobFormat::llama_factory && holds_factory_megatron(text))
    return import_factory_megatron(text, file);
  if (format == JobFormat::bridge || format == JobFormat::nemo) {
    ImportedJob job = import_overrides(text, file);
    // The function's name, that of the recipe it begins with, and the file's, called after its
    // model.
    if (!chosen.empty()) job.recipes.insert(job.recipes.begin(), chosen);
    if (python) job.recipes.push_back(stem_of(file));
    return job;
  }
  if (format == JobFormat::torchtitan) return import_torchtitan(text, file);
  if (format == JobFormat::nanotron) return import_nanotron(text, file);
  if (format == JobFormat::slime) return import_slime(text, file);
  if (format == JobFormat::verl) return import_verl(text, file);
  if (format == JobFormat::gpt_neox) return import_neox(text, file);
  if (trainer_format(all) == format) return import_trainer(text, file, format);
  if (format == JobFormat::scenario) {
    ImportedJob job;
    job.scenario = parse_yaml(text, file);
    return job;
  }
  ImportedJob job = import_megatron(holds_megatron_log(text) ? read_megatron_log(text, file)
                                                             : read_megatron_script(text, file));
  require_half(job, file);
  return job;
}

}  // namespace planner
