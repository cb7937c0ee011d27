// What those write who train with Hugging Face's Trainer: configurations of accelerate, axolotl and
// LLaMA-Factory, commands of ms-swift, and the Trainer's own arguments as YAML or after a
// launcher. All come out in the Trainer's words: model_name_or_path, per_device_train_batch_size,
// lora_r.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/exchange/imported_job.hpp"
#include "planner/exchange/shell_script.hpp"
#include "planner/frameworks/setting_fields.hpp"

namespace planner {

// What holds where a setting is not written.
struct TrainerDefaults {
  std::int64_t micro_batch = 8;
  std::int64_t sequence = 0;  // 0: it has to be written
  bool checkpointing = false;
  std::string_view adapter = "none";
  std::int64_t rank = 8;
  std::int64_t alpha = 16;  // 0: twice the rank
  double dropout = 0;
  bool double_quantization = true;  // of a base in nf4
  std::string_view context;         // how context parallelism exchanges, where it is not written
};

struct TrainerJob {
  JobFormat format = JobFormat::trainer;
  TrainerDefaults defaults;
  SettingFields fields;
  std::int64_t devices = 0;  // 0: not written
  std::int64_t nodes = 1;    // of these
  bool alone = false;        // one process has all of them
};

// "--lora_target q_proj v_proj" has two values, "--bf16" the value true.
std::vector<SetField> flags_of(const ShellWords& words);

// Whether a setting of that name changes neither the time nor the memory of an iteration.
bool is_harmless_to_trainer(std::string_view name);

// Which of them a text is; nothing for another.
std::optional<JobFormat> trainer_format(const std::string& text);

// Throws costmodel::ConfigError for a text that cannot be read, and for a command whose settings
// are in another file.
TrainerJob read_trainer_job(const std::string& text, const std::string& file, JobFormat format);

}  // namespace planner
