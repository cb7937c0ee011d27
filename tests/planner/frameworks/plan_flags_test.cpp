// Every setting that an importer looks for, changed: the scenario changes, or the file is refused,
// or the setting is listed as left out. The names are the importers' own record of what they
// asked for; what may be changed without any of it stands here with its reason.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/base/error.hpp"
#include "planner/frameworks/import_megatron.hpp"
#include "planner/frameworks/import_nanotron.hpp"
#include "planner/frameworks/import_neox.hpp"
#include "planner/frameworks/import_torchtitan.hpp"
#include "planner/frameworks/import_trainer.hpp"
#include "planner/frameworks/import_verl.hpp"
#include "planner/frameworks/megatron_script.hpp"
#include "planner/frameworks/megatron_words.hpp"

namespace plan_flags_test {

using planner::ImportedJob;
using planner::JobFormat;

namespace {

using Reasons = std::map<std::string, const char*, std::less<>>;

struct Sample {
  const char* name;
  std::string text;
  ImportedJob (*import)(const std::string& text);
  std::string (*with)(const std::string& text, const std::string& name, const std::string& value);
  Reasons with_others;  // what must be set for the setting to matter
  Reasons unchanged;    // and why
};

// What a setting may stand for: sizes, truths, and the words that the importers know.
constexpr std::string_view values =
    "3 2 4 8 64 1 0 true false 0.5 full none lora qlora bf16 fp16 fp32 fp8 bfloat16 "
    "float16 float32 adafactor zero3.json eager selective uniform block rmsnorm RMSNorm "
    "swiglu llama alibi rope local unfused FULL_SHARD full_shard SHARD_GRAD_OP dpo cpu "
    "q_proj a2a 1f1b gpipe REDUCE_SCATTER GPT2BPETokenizer NullTokenizer SPMTokenizer NO "
    "cohere sgd learnable off-by-one te transformer_engine sinkhorn sigmoid (4,0) "
    "[1]*2+[0]*2 Et*2|t*2L 0.1 fp8_e4m3 e4m3 hybrid tensorwise delayed mxfp8 dsa "
    "gated_delta_net yarn m4/x allgather alltoall flex dist_muon muon linear embedding "
    "moe_act mlp core_attn no_shard optim optim_grads optim_grads_params Qwen/Qwen3-8B";

// The lines but those that begin with the word.
std::string without(const std::string& text, const std::string& word) {
  std::string kept;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    if (!line.starts_with(word)) kept += line + "\n";
    at = end + 1;
  }
  return kept;
}

// The job without what no reader of the scenario sees.
std::string seen_of(const ImportedJob& job) { return without(to_yaml(job), "# Note"); }

bool changes(const Sample& sample, const std::string& name) {
  const auto others = sample.with_others.find(name);
  const std::string text =
      others == sample.with_others.end() ? sample.text : sample.text + others->second;
  const std::string base = seen_of(sample.import(text));
  std::istringstream words{std::string(values)};
  for (std::string value; words >> value;) {
    try {
      if (seen_of(sample.import(sample.with(text, name, value))) != base) return true;
    } catch (const costmodel::ConfigError&) {
      return true;
    }
  }
  return false;
}

// In place of its line; a setting of a map has the map's name before a point, as fields have.
std::string in_yaml(const std::string& text, const std::string& name, const std::string& value) {
  return without(text, name + ":") + name + ": " + value + "\n";
}

std::string in_toml(const std::string& text, const std::string& name, const std::string& value) {
  const bool raw =
      value == "true" || value == "false" || (value.front() >= '0' && value.front() <= '9');
  return without(text, name + " =") + name + " = " + (raw ? value : "\"" + value + "\"") + "\n";
}

std::string in_overrides(const std::string& text, const std::string& name,
                         const std::string& value) {
  return text + " " + name + "=" + value;
}

std::string in_arguments(const std::string& text, const std::string& flag,
                         const std::string& value) {
  const bool alone = value == "true";
  return text + " " + flag + (alone ? "" : " " + value);
}

ImportedJob of_axolotl(const std::string& text) {
  return planner::import_trainer(text, "x.yaml", JobFormat::axolotl);
}
ImportedJob of_llama_factory(const std::string& text) {
  return planner::import_trainer(text, "x.yaml", JobFormat::llama_factory);
}
ImportedJob of_accelerate(const std::string& text) {
  return planner::import_trainer(text, "x.yaml", JobFormat::accelerate);
}
ImportedJob of_verl(const std::string& text) { return planner::import_verl(text + "\n", "x.sh"); }
ImportedJob of_neox(const std::string& text) { return planner::import_neox(text, "x.yml"); }
ImportedJob of_nanotron(const std::string& text) { return planner::import_nanotron(text, "x.yml"); }
ImportedJob of_torchtitan(const std::string& text) {
  return planner::import_torchtitan(text, "x.toml");
}
ImportedJob of_megatron(const std::string& text) {
  return planner::import_megatron(planner::read_megatron_script(text, "x.sh"));
}

std::vector<Sample> samples();

void check(const Sample& sample) {
  CAPTURE(std::string(sample.name));
  const ImportedJob job = sample.import(sample.text);
  CHECK(job.asked.size() >= 10);
  for (const std::string& name : job.asked) {
    CAPTURE(name);
    const bool explained = sample.unchanged.contains(name);
    CHECK(changes(sample, name) != explained);
  }
}

}  // namespace

TEST_CASE("what an importer looks for changes its scenario, is refused or is left out") {
  for (const Sample& sample : samples()) check(sample);
}

// A key that comes from one flag alone is no flag that changes nothing.
TEST_CASE("no flag of Megatron-LM with a key of ours is among those that change nothing") {
  for (const auto& word : planner::megatron_words()) {
    CAPTURE(word.flag);
    CHECK_FALSE(planner::is_harmless_to_megatron(word.flag));
  }
}

namespace {

Reasons companions_of_megatron() {
  return {{"--accumulate-allreduce-grads-in-fp32", " --bf16 --grad-reduce-in-bf16"},
          {"--grad-reduce-in-bf16", " --bf16"},
          {"--account-for-embedding-in-pipeline-split", " --account-for-loss-in-pipeline-split"},
          {"--account-for-loss-in-pipeline-split", " --account-for-embedding-in-pipeline-split"},
          {"--cp-comm-type", " --context-parallel-size 2"},
          {"--cuda-graph-modules", " --cuda-graph-impl transformer_engine"},
          {"--cuda-graph-scope", " --cuda-graph-impl transformer_engine"},
          {"--moe-hybridep-num-sms",
           " --moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep"},
          {"--no-overlap-p2p-communication", " --num-layers-per-virtual-pipeline-stage 2"},
          {"--recompute-modules", " --recompute-granularity selective"},
          {"--reuse-grad-buf-for-mxfp8-param-ag",
           " --fp8-format e4m3 --fp8-recipe mxfp8 --fp8-param-gather"},
          {"--transformer-impl", " --bf16"},
          {"--attention-backend", " --bf16"},
          {"--use-flash-attn", " --bf16 --transformer-impl local"},
          {"--use-megatron-fsdp", " --data-parallel-sharding-strategy optim_grads"},
          {"--use-precision-aware-optimizer", " --exp-avg-dtype bf16"},
          {"--window-attn-skip-freq", " --window-size 127,0"}};
}

Reasons unchanged_by_megatron(bool experts) {
  const Reasons of_dense{
      {"--fp4-recipe", "nvfp4 is the one recipe"},
      {"--no-position-embedding", "--position-embedding-type decides, in all releases read here"}};
  if (!experts) return of_dense;
  Reasons of_experts = of_dense;
  of_experts.insert(
      {{"--moe-grouped-gemm", "experts' products are the stack's, which are grouped"},
       {"--moe-permute-fusion", "the permutation is the stack's, which is fused"},
       {"--moe-router-dtype", "the router's product is small, its precision of no account"},
       {"--moe-router-force-load-balancing", "an even load is what is priced"},
       {"--moe-pad-expert-input-to-capacity", "buffers of a capacity are priced as full"}});
  return of_experts;
}

std::vector<Sample> samples() {
  const std::string dense =
      "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --num-layers 8 --hidden-size 512 "
      "--num-attention-heads 8 --seq-length 1024 --max-position-embeddings 1024 --vocab-size 50304 "
      "--micro-batch-size 1 --global-batch-size 64 --tensor-model-parallel-size 2 "
      "--pipeline-model-parallel-size 2";
  const Reasons with_others = companions_of_megatron();
  const char* const between = "on the devices while the actor is updated, which is what is priced";
  return {
      {"axolotl",
       "base_model: a/b\nnum_processes: 8\nadapter: lora\nsequence_len: 2048\n"
       "micro_batch_size: 2\n",
       of_axolotl,
       in_yaml,
       {},
       {}},
      {"axolotl, all weights",
       "base_model: a/b\nnum_processes: 8\nsequence_len: 2048\nmicro_batch_size: 2\n",
       of_axolotl,
       in_yaml,
       {},
       {}},
      {"LLaMA-Factory",
       "model_name_or_path: a/b\nnum_processes: 8\nfinetuning_type: lora\ncutoff_len: 2048\n",
       of_llama_factory,
       in_yaml,
       {},
       {}},
      {"accelerate",
       "distributed_type: FSDP\nnum_processes: 8\nmodel_name_or_path: a/b\nmax_length: 512\n",
       of_accelerate,
       in_yaml,
       {},
       {}},
      {"verl, FSDP",
       "python3 -m verl.trainer.main_ppo data.train_batch_size=1024 "
       "actor_rollout_ref.model.path=a/b trainer.n_gpus_per_node=8 trainer.nnodes=2",
       of_verl,
       in_overrides,
       {},
       {{"actor_rollout_ref.actor.fsdp_config.optimizer_offload", between},
        {"actor_rollout_ref.actor.fsdp_config.param_offload", between}}},
      {"verl, Megatron-LM",
       "python3 -m verl.trainer.main_ppo data.train_batch_size=1024 "
       "actor_rollout_ref.actor.strategy=megatron actor_rollout_ref.model.path=a/b "
       "trainer.n_gpus_per_node=8 trainer.nnodes=2",
       of_verl,
       in_overrides,
       {},
       {{"actor_rollout_ref.actor.megatron.optimizer_offload", between},
        {"actor_rollout_ref.actor.megatron.param_offload", between}}},
      {"GPT-NeoX",
       "pipe_parallel_size: 1\nmodel_parallel_size: 2\nnum_layers: 8\nhidden_size: 512\n"
       "num_attention_heads: 8\nseq_length: 2048\ncheckpoint_activations: true\n"
       "pos_emb: rotary\n",
       of_neox,
       in_yaml,
       {},
       {}},
      {"torchtitan",
       "model.name = \"llama3\"\nmodel.flavor = \"8B\"\ntraining.local_batch_size = 1\n"
       "training.seq_len = 2048\nparallelism.pipeline_parallel_degree = 2\n"
       "parallelism.data_parallel_shard_degree = 4\n",
       of_torchtitan,
       in_toml,
       {},
       {}},
      {"nanotron",
       "model.model_config.is_llama_config: true\nmodel.model_config.hidden_size: 512\n"
       "model.model_config.intermediate_size: 2048\nmodel.model_config.num_hidden_layers: 8\n"
       "model.model_config.num_attention_heads: 8\nmodel.model_config.vocab_size: 50257\n"
       "parallelism.dp: 4\nparallelism.pp: 2\nparallelism.tp: 2\n"
       "tokens.micro_batch_size: 2\ntokens.batch_accumulation_per_replica: 8\n"
       "tokens.sequence_length: 512\n",
       of_nanotron,
       in_yaml,
       {},
       {}},
      {"Megatron-LM, dense", dense, of_megatron, in_arguments, with_others,
       unchanged_by_megatron(false)},
      {"Megatron-LM, experts",
       dense + " --num-experts 8 --moe-router-topk 2 --expert-model-parallel-size 2", of_megatron,
       in_arguments, with_others, unchanged_by_megatron(true)},
  };
}

}  // namespace

}  // namespace plan_flags_test
