// What an import makes of another program's description of a job.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/config/value.hpp"

namespace planner {

// What a file is: a scenario of ours, a Megatron-LM script, argument list or log, a
// ds_config.json, a torchtitan TOML, fields of Megatron-Bridge or of a NeMo 2.x recipe; of those
// who train with Hugging Face's Trainer an accelerate, axolotl or LLaMA-Factory configuration, a
// command of ms-swift, or the Trainer's own arguments; a nanotron or GPT-NeoX configuration; a
// command of verl.
enum class JobFormat {
  scenario,
  megatron,
  deepspeed,
  torchtitan,
  bridge,
  nemo,
  accelerate,
  axolotl,
  llama_factory,
  ms_swift,
  trainer,
  nanotron,
  gpt_neox,
  verl,
  slime
};
inline constexpr std::array<std::string_view, 15> job_format_names{
    "scenario", "megatron",   "deepspeed", "torchtitan",    "megatron-bridge",
    "nemo",     "accelerate", "axolotl",   "llama-factory", "ms-swift",
    "trainer",  "nanotron",   "gpt-neox",  "verl",          "slime"};

// What stands in a scenario where the file does not say a key that a prediction needs.
inline constexpr std::string_view to_be_replaced = "REPLACE";

// A key that the file does not say, and what to do about it.
struct MissingKey {
  std::string key;  // dotted: "cluster.base"
  std::string remedy;
  std::string otherwise;  // what is assumed for it with a cluster; empty: nothing
  std::string because;    // "as GPT-2's"
};

struct ImportedJob {
  JobFormat format = JobFormat::scenario;
  costmodel::Value scenario;  // as of a scenario file: a map of model, cluster, training and plan
  std::vector<MissingKey> missing;    // each is the word REPLACE in the scenario
  std::vector<std::string> left_out;  // said by the file, and without a key of ours
  std::vector<std::string> notes;     // what was assumed
  std::vector<std::string> recipes;   // names of what the job is made of, the nearest first
  std::vector<std::string> asked;     // settings that the importer looks for, set or not
  std::int64_t accumulation = 1;      // micro-batches of a replica, where the file has no batch
  std::int64_t nodes = 0;             // where the file has no number of devices
  std::int64_t started = 0;           // processes that the file itself starts
};

// An import of this format, with empty parts of a scenario.
ImportedJob job_of(JobFormat format);
// Sets `part`.`key`; or names it as missing, with the word REPLACE in its place.
void put_key(ImportedJob& job, const char* part, const std::string& key, const std::string& text);
void miss_key(ImportedJob& job, const char* part, const std::string& key, std::string remedy);
// Of a job on samples whose length no setting limits: what is assumed with a cluster.
void assume_sequence(ImportedJob& job);
// The name of its devices, which no file has.
void miss_cluster(ImportedJob& job);

// Names the cluster (--cluster NAME) and keeps its number of devices.
void set_cluster(ImportedJob& job, const std::string& name);

// Where the file has no number of devices, or starts fewer than its plan needs: its nodes, else the
// fewest full ones, of `per_node` devices, that the plan's sizes divide; of these as many as its
// batch divides, and one micro-batch a replica where it has none; and what else is assumed for a
// missing key. With notes.
void assume_missing(ImportedJob& job, std::int64_t per_node);

// Sets a key of the scenario ("plan.tp=8", --set), which is then no longer missing. Throws
// costmodel::ConfigError as assign_path() does.
void set_key(ImportedJob& job, const std::string& assignment, const costmodel::Mark& mark);

// The scenario as YAML; comments at the top say what is missing, assumed and left out.
std::string to_yaml(const ImportedJob& job);

}  // namespace planner
