// Every setting that an importer looks for, changed: the scenario changes, or the file is refused,
// or the setting is listed as left out. The names are the importers' own record of what they
// asked for, or the framework's list; what may be changed without any of it stands here with its
// reason.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/base/error.hpp"
#include "planner/frameworks/argument_dialects.hpp"
#include "planner/frameworks/import_megatron.hpp"
#include "planner/frameworks/import_nanotron.hpp"
#include "planner/frameworks/import_neox.hpp"
#include "planner/frameworks/import_overrides.hpp"
#include "planner/frameworks/import_torchtitan.hpp"
#include "planner/frameworks/import_trainer.hpp"
#include "planner/frameworks/import_verl.hpp"
#include "planner/frameworks/json_import_deepspeed.hpp"
#include "planner/frameworks/megatron_script.hpp"
#include "planner/frameworks/megatron_words.hpp"
#include "planner/frameworks/override_words.hpp"
#include "tests/planner/support/deepspeed_keys.hpp"

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
  Reasons with_others;                  // what must be set for the setting to matter
  Reasons unchanged;                    // and why
  std::vector<std::string> names = {};  // where the importer keeps no record
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
    "moe_act mlp core_attn no_shard optim optim_grads optim_grads_params Qwen/Qwen3-8B never "
    "adamw_bnb_8bit FSDP gmlp afab float8 mxfp8 hybridep alltoall_seq deepep "
    "meta-llama/Meta-Llama-3-8B";

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

// As a file's reader takes it: numbers and truths as they are, words in quotes, so that none is
// refused for its signs.
std::string literal(const std::string& value) {
  const bool number = value.find_first_not_of("0123456789.") == std::string::npos;
  return number || value == "true" || value == "false" ? value : "\"" + value + "\"";
}

// In place of its line; a setting of a map has the map's name before a point, as fields have.
std::string in_yaml(const std::string& text, const std::string& name, const std::string& value) {
  return without(text, name + ":") + name + ": " + literal(value) + "\n";
}

std::string in_toml(const std::string& text, const std::string& name, const std::string& value) {
  return without(text, name + " =") + name + " = " + literal(value) + "\n";
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

// ms-swift's commands, whose names have underscores.
std::string in_command(const std::string& text, const std::string& name, const std::string& value) {
  return text + " --" + name + " " + value;
}

std::string in_json(const std::string& text, const std::string& name, const std::string& value) {
  auto root = nlohmann::json::parse(text);
  std::string pointer = "/" + name;
  std::ranges::replace(pointer, '.', '/');
  if (pointer.ends_with("/*")) pointer.replace(pointer.size() - 1, 1, "fused");
  const auto read = nlohmann::json::parse(value, nullptr, false);
  root[nlohmann::json::json_pointer(pointer)] = read.is_discarded() ? nlohmann::json(value) : read;
  return root.dump();
}

ImportedJob of_overrides(const std::string& text) {
  return planner::import_overrides(text + "\n", "x.sh");
}
ImportedJob of_deepspeed(const std::string& text) {
  return planner::import_deepspeed(text, "x.json");
}
ImportedJob of_swift(const std::string& text) {
  return planner::import_trainer(text + "\n", "x.sh", JobFormat::ms_swift);
}
ImportedJob of_swift_megatron(const std::string& text) {
  return planner::import_swift_megatron(text + "\n", "x.sh");
}
ImportedJob of_torchtitan_command(const std::string& text) {
  return planner::import_torchtitan(text + "\n", "x.sh");
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
std::vector<Sample> listed_samples();

void check(const Sample& sample) {
  CAPTURE(std::string(sample.name));
  const ImportedJob job = sample.import(sample.text);
  const auto& names = sample.names.empty() ? job.asked : sample.names;
  CHECK(names.size() >= 10);
  for (const std::string& name : names) {
    CAPTURE(name);
    const bool explained = sample.unchanged.contains(name);
    CHECK(changes(sample, name) != explained);
  }
}

}  // namespace

TEST_CASE("what an importer looks for changes its scenario, is refused or is left out") {
  for (const Sample& sample : samples()) check(sample);
}

TEST_CASE("what a framework lists changes a scenario, is refused or is left out") {
  for (const Sample& sample : listed_samples()) check(sample);
}

// A key that comes from one flag alone is no flag that changes nothing.
TEST_CASE("no flag of Megatron-LM with a key of ours is among those that change nothing") {
  for (const auto& word : planner::megatron_words()) {
    CAPTURE(word.flag);
    CHECK_FALSE(planner::is_harmless_to_megatron(word.flag));
  }
}

namespace {

// Of the programs around Hugging Face's Trainer.
Reasons unchanged_by_trainers() {
  return {{"flash_attention", "the stack's attention is a fused kernel either way"},
          {"sdp_attention", "the stack's attention is a fused kernel either way"},
          {"packing", "every sequence is taken as full either way, with a note"},
          {"tf32", "of products in fp32, which this job has none of"}};
}

Reasons and_also(Reasons some, const Reasons& more) {
  some.insert(more.begin(), more.end());
  return some;
}

// A table of companions in the words of overrides.
Reasons companions_of_overrides(bool bridge) {
  if (!bridge) {
    const char *const fsdp = " trainer.strategy.fsdp=megatron",
                      *const aware = " optim.config.use_precision_aware_optimizer=true";
    return {{"trainer.strategy.ddp.data_parallel_sharding_strategy", fsdp},
            {"trainer.strategy.fsdp",
             " trainer.strategy.ddp.data_parallel_sharding_strategy=optim_grads"},
            {"trainer.strategy.ddp.outer_dp_sharding_strategy",
             " trainer.strategy.num_distributed_optimizer_instances=2 "
             "trainer.strategy.ddp.use_distributed_optimizer=true"},
            {"optim.config.exp_avg_dtype", aware},
            {"optim.config.exp_avg_sq_dtype", aware},
            {"model.config.cp_comm_type", " trainer.strategy.context_parallel_size=2"},
            {"model.config.recompute_method", " model.config.recompute_granularity=full"},
            {"model.config.recompute_modules", " model.config.recompute_granularity=selective"},
            {"trainer.plugins.fp8_recipe", " trainer.plugins.fp8=hybrid"}};
  }
  return {{"ddp.data_parallel_sharding_strategy", " ddp.use_megatron_fsdp=true"},
          {"ddp.megatron_fsdp_main_grads_dtype", " ddp.use_megatron_fsdp=true"},
          {"ddp.outer_dp_sharding_strategy",
           " ddp.num_distributed_optimizer_instances=2 ddp.use_distributed_optimizer=true"},
          {"mixed_precision.fp8_recipe", " mixed_precision.fp8=e4m3"},
          {"model.cp_comm_type", " model.context_parallel_size=2"},
          {"model.cuda_graph_modules", " model.cuda_graph_impl=transformer_engine"},
          {"model.moe_flex_dispatcher_backend", " model.moe_token_dispatcher_type=flex"},
          {"model.moe_hybridep_num_sms",
           " model.moe_token_dispatcher_type=flex model.moe_flex_dispatcher_backend=hybridep"},
          {"model.offload_modules", " model.fine_grained_activation_offloading=true"},
          {"model.recompute_method", " model.recompute_granularity=full"},
          {"model.recompute_modules", " model.recompute_granularity=selective"},
          {"model.window_attn_skip_freq", " model.window_size=[127,0]"},
          {"optimizer.exp_avg_dtype", " optimizer.use_precision_aware_optimizer=true"},
          {"optimizer.exp_avg_sq_dtype", " optimizer.use_precision_aware_optimizer=true"}};
}

Reasons companions_of_megatron() {
  return {{"--accumulate-allreduce-grads-in-fp32", " --bf16 --grad-reduce-in-bf16"},
          {"--grad-reduce-in-bf16", " --bf16"},
          {"--account-for-embedding-in-pipeline-split", " --account-for-loss-in-pipeline-split"},
          {"--account-for-loss-in-pipeline-split", " --account-for-embedding-in-pipeline-split"},
          {"--cp-comm-type", " --context-parallel-size 2"},
          {"--cuda-graph-modules", " --cuda-graph-impl transformer_engine"},
          {"--cuda-graph-scope", " --cuda-graph-impl transformer_engine"},
          {"--fine-grained-activation-offloading", " --offload-modules core_attn"},
          {"--offload-modules", " --fine-grained-activation-offloading"},
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
       unchanged_by_trainers()},
      {"axolotl, all weights",
       "base_model: a/b\nnum_processes: 8\nsequence_len: 2048\nmicro_batch_size: 2\n",
       of_axolotl,
       in_yaml,
       {},
       unchanged_by_trainers()},
      {"LLaMA-Factory",
       "model_name_or_path: a/b\nnum_processes: 8\nfinetuning_type: lora\ncutoff_len: 2048\n",
       of_llama_factory,
       in_yaml,
       {},
       and_also(unchanged_by_trainers(),
                {{"lora_target_linear", "axolotl's; all linear layers are the default here"},
                 {"gradient_checkpointing", "disable_gradient_checkpointing alone counts here"},
                 {"max_length", "that of what it generates; cutoff_len is a sample's"}})},
      {"accelerate",
       "distributed_type: FSDP\nnum_processes: 8\nmodel_name_or_path: a/b\nmax_length: 512\n",
       of_accelerate,
       in_yaml,
       {},
       and_also(unchanged_by_trainers(), {{"bf16", "the Trainer's; mixed_precision is its own"}})},
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
       {{"compile.components", "compile.enable = true\n"},
        {"parallelism.context_parallel_rotate_method", "parallelism.context_parallel_degree = 2\n"},
        {"quantize.linear.float8.filter_fqns", "model.converters = [\"quantize.linear.float8\"]\n"},
        {"quantize.linear.mx.filter_fqns", "model.converters = [\"quantize.linear.mx\"]\n"}},
       {{"compile", "Python's name of a table that TOML has as compile.enable"},
        {"parallelism.expert_parallel_comm_backend", "of experts, which this model has none of"},
        {"quantize.grouped_mm.float8.fqns", "of experts, which this model has none of"},
        {"quantize.grouped_mm.mx.fqns", "of experts, which this model has none of"}}},
      {"nanotron",
       "model.model_config.is_llama_config: true\nmodel.model_config.hidden_size: 512\n"
       "model.model_config.intermediate_size: 2048\nmodel.model_config.num_hidden_layers: 8\n"
       "model.model_config.num_attention_heads: 8\nmodel.model_config.vocab_size: 50257\n"
       "parallelism.dp: 4\nparallelism.pp: 2\nparallelism.tp: 2\n"
       "tokens.micro_batch_size: 2\ntokens.batch_accumulation_per_replica: 8\n"
       "tokens.sequence_length: 512\n",
       of_nanotron,
       in_yaml,
       {{"parallelism.tp_linear_async_communication", "parallelism.tp_mode: REDUCE_SCATTER\n"}},
       {}},
      {"Megatron-LM, dense", dense, of_megatron, in_arguments, with_others,
       unchanged_by_megatron(false)},
      {"Megatron-LM, experts",
       dense + " --num-experts 8 --moe-router-topk 2 --expert-model-parallel-size 2", of_megatron,
       in_arguments, with_others, unchanged_by_megatron(true)},
  };
}

std::vector<std::string> split(const std::string& text) {
  std::istringstream words(text);
  std::vector<std::string> all;
  for (std::string word; words >> word;) all.push_back(word);
  return all;
}

// The fields of Megatron-Bridge, or of NeMo 2, whose flags may change a plan.
std::vector<std::string> override_names(std::string_view planner::OverrideWord::*framework) {
  std::set<std::string> names;
  for (const auto& word : planner::override_words()) {
    const bool together = word.form == planner::OverrideForm::together;
    if ((word.*framework).empty() || together || planner::is_harmless_to_megatron(word.flag))
      continue;
    names.insert(std::string(word.*framework));
  }
  return {names.begin(), names.end()};
}

// What changes neither time nor memory, of all that DeepSpeed documents.
Reasons unchanged_by_deepspeed() {
  const char* const log = "what is logged";
  const char* const scale = "the scale of the loss, of no account";
  return {{"dump_state", log},
          {"steps_per_print", log},
          {"wall_clock_breakdown", log},
          {"fp16.enabled", "bf16 is on, which comes first"},
          {"fp16.consecutive_hysteresis", scale},
          {"fp16.hysteresis", scale},
          {"fp16.initial_scale_power", scale},
          {"fp16.loss_scale", scale},
          {"fp16.loss_scale_window", scale},
          {"fp16.min_loss_scale", scale},
          {"gradient_clipping", "the stack clips"},
          {"optimizer.params.*", "rates and betas"},
          {"zero_allow_untested_optimizer", "a permission"},
          {"zero_optimization.mics_shard_size", "of a number of devices, which is not known"},
          {"zero_optimization.offload_optimizer.pin_memory", "how the host keeps it"},
          {"zero_optimization.offload_optimizer.ratio", "of an optimizer on the host"},
          {"zero_optimization.offload_param.pin_memory", "how the host keeps it"}};
}

std::vector<std::string> deepspeed_names() {
  const auto keys = deepspeed_keys::documented();
  return {keys.begin(), keys.end()};
}

// What ms-swift's commands have of Megatron's plan (swift/megatron/arguments).
const char* const swift_names =
    "micro_batch_size global_batch_size recompute_granularity recompute_method "
    "recompute_num_layers recompute_modules optimizer optimizer_cpu_offload "
    "optimizer_offload_fraction use_precision_aware_optimizer exp_avg_dtype "
    "use_distributed_optimizer use_megatron_fsdp data_parallel_sharding_strategy "
    "tensor_model_parallel_size pipeline_model_parallel_size "
    "decoder_first_pipeline_num_layers decoder_last_pipeline_num_layers "
    "account_for_embedding_in_pipeline_split account_for_loss_in_pipeline_split "
    "sequence_parallel context_parallel_size cp_comm_type tp_comm_overlap "
    "overlap_grad_reduce overlap_param_gather virtual_pipeline_model_parallel_size "
    "microbatch_group_size_per_vp_stage pipeline_model_parallel_layout "
    "expert_model_parallel_size expert_tensor_parallel_size fp8_format fp8_recipe "
    "fp8_param_gather fp4_format fp16 accumulate_allreduce_grads_in_fp32 "
    "attention_backend moe_token_dispatcher_type moe_enable_deepep "
    "moe_expert_capacity_factor mtp_num_layers model max_length tuner_type "
    "cross_entropy_loss_fusion rlhf_type torch_dtype";

const char* const torchtitan_names =
    "model.name model.flavor training.local_batch_size training.global_batch_size "
    "training.seq_len training.enable_cpu_offload parallelism.tensor_parallel_degree "
    "parallelism.pipeline_parallel_degree parallelism.context_parallel_degree "
    "parallelism.data_parallel_replicate_degree parallelism.data_parallel_shard_degree "
    "parallelism.fsdp_reshard_after_forward activation_checkpoint.mode compile.enable";

std::vector<Sample> listed_samples() {
  const std::string bridge =
      "torchrun --nproc_per_node 8 --nnodes 2 train.py model.num_layers=8 model.hidden_size=512 "
      "model.num_attention_heads=8 model.seq_length=1024 model.vocab_size=50304 "
      "model.tensor_model_parallel_size=2 model.pipeline_model_parallel_size=2 "
      "train.micro_batch_size=1 train.global_batch_size=64 model.num_moe_experts=8 "
      "model.moe_router_topk=2 model.expert_model_parallel_size=2";
  const std::string nemo =
      "torchrun --nproc_per_node 8 --nnodes 2 train.py model.config.num_layers=8 "
      "model.config.hidden_size=512 model.config.num_attention_heads=8 "
      "model.config.seq_length=1024 model.config.vocab_size=50304 "
      "trainer.strategy.tensor_model_parallel_size=2 "
      "trainer.strategy.pipeline_model_parallel_size=2 data.micro_batch_size=1 "
      "data.global_batch_size=64 model.config.num_moe_experts=8 model.config.moe_router_topk=2 "
      "trainer.strategy.expert_model_parallel_size=2";
  return {
      {"Megatron-Bridge",
       bridge,
       of_overrides,
       in_overrides,
       companions_of_overrides(true),
       {{"mixed_precision.fp4_recipe", "nvfp4 is the one recipe"},
        {"optimizer.main_grads_dtype", "mixed_precision.grad_reduce_in_fp32 decides"},
        {"model.moe_router_dtype", "the router's product is small, its precision of no account"}},
       override_names(&planner::OverrideWord::bridge)},
      {"NeMo 2",
       nemo,
       of_overrides,
       in_overrides,
       companions_of_overrides(false),
       {{"model.config.moe_router_dtype",
         "the router's product is small, its precision of no account"}},
       override_names(&planner::OverrideWord::nemo)},
      {"ds_config.json",
       R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
           "zero_optimization": {"stage": 3}, "optimizer": {"type": "AdamW"}})",
       of_deepspeed,
       in_json,
       {},
       unchanged_by_deepspeed(),
       deepspeed_names()},
      {"ms-swift",
       "NPROC_PER_NODE=8 swift sft --model a/b --max_length 2048 --tuner_type lora",
       of_swift,
       in_command,
       {},
       and_also(unchanged_by_trainers(),
                {{"bf16", "bf16 is its default"},
                 {"lora_target_linear", "axolotl's; all linear layers are the default here"}})},
      {"ms-swift, Megatron",
       "NPROC_PER_NODE=16 megatron sft --model a/b --max_length 2048 "
       "--tensor_model_parallel_size 2 --pipeline_model_parallel_size 2",
       of_swift_megatron,
       in_command,
       {{"use_precision_aware_optimizer", " --exp_avg_dtype bf16"},
        {"account_for_embedding_in_pipeline_split", " --account_for_loss_in_pipeline_split true"},
        {"account_for_loss_in_pipeline_split", " --account_for_embedding_in_pipeline_split true"},
        {"cp_comm_type", " --context_parallel_size 2"}},
       {{"accumulate_allreduce_grads_in_fp32", "on of itself; main_grads_dtype decides"}},
       split(swift_names)},
      {"torchtitan's command",
       "NGPU=16 CONFIG=llama3_8b ./run_train.sh --training.steps 10",
       of_torchtitan_command,
       in_command,
       {},
       {},
       split(torchtitan_names)},
  };
}

}  // namespace

}  // namespace plan_flags_test
