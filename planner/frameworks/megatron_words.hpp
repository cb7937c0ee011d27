// Words of Megatron-LM core 0.20 beside keys of a scenario: the export writes them, the import
// reads them. What one flag alone says of one key stands here; what several say together is in
// export_megatron and import_megatron.
#pragma once

#include <span>
#include <string_view>

namespace planner {

// When a flag says anything. Logs print all of them, at their defaults.
enum class WordOf { any_job, latent_attention, experts, rotary, mtp, scan, delta_net };

struct MegatronWord {
  std::string_view flag;
  std::string_view key;  // dotted: "plan.tp"
  WordOf of = WordOf::any_job;
  bool is_switch = false;  // the flag alone means true
};

std::span<const MegatronWord> megatron_words();

bool has_megatron_flag(std::string_view key);

// The flag of a key of the table.
std::string_view megatron_flag(std::string_view key);

// Whether a flag changes neither time nor memory of an iteration: data, logs, checkpoints, learning
// rates, seeds, evaluation, and other programs than pretraining.
bool is_megatron_flag(std::string_view flag);  // that the newest release accepts

bool is_harmless_to_megatron(std::string_view flag);
bool is_harmless_to_forks(std::string_view flag);  // Megatron-DeepSpeed's own flags

}  // namespace planner
