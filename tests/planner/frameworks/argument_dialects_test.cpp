// Megatron Core's arguments under other programs' names: ms-swift's commands, NeMo 1's YAML.
#include "planner/frameworks/argument_dialects.hpp"

#include <doctest/doctest.h>

#include "costmodel/base/error.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace argument_dialects_test {

using namespace planner;

namespace {

const std::string swift =
    "NPROC_PER_NODE=8 NNODES=2 \\\nmegatron sft \\\n  --model Qwen/Qwen3-30B-A3B \\\n"
    "  --tensor_model_parallel_size 2 --sequence_parallel true \\\n"
    "  --expert_model_parallel_size 4 --micro_batch_size 2 --max_length 4096 \\\n"
    "  --recompute_granularity full --recompute_method uniform --recompute_num_layers 1 \\\n"
    "  --overlap_grad_reduce true --dataset a b --lr 1e-5";

const std::string nemo =
    "trainer:\n  num_nodes: 16\n  devices: 8\n  precision: bf16\nmodel:\n"
    "  micro_batch_size: 1\n  global_batch_size: 256\n  tensor_model_parallel_size: 4\n"
    "  pipeline_model_parallel_size: 4\n  virtual_pipeline_model_parallel_size: 5\n"
    "  encoder_seq_length: 4096\n  max_position_embeddings: ${.encoder_seq_length}\n"
    "  num_layers: 80\n  hidden_size: 8192\n  ffn_hidden_size: ${multiply:4, ${.hidden_size}}\n"
    "  num_attention_heads: 64\n  num_query_groups: 8\n  normalization: rmsnorm\n"
    "  bias: false\n  activation: fast-swiglu\n  position_embedding_type: rope\n"
    "  share_embeddings_and_output_weights: false\n  transformer_engine: true\n"
    "  sequence_parallel: true\n  activations_checkpoint_granularity: null\n"
    "  activations_checkpoint_num_layers: 0\n  overlap_p2p_comm: true\n"
    "  tokenizer:\n    library: megatron\n    type: GPT2BPETokenizer\n"
    "  optim:\n    name: mcore_distributed_optim\n    overlap_grad_sync: true\n";

std::string at(const ImportedJob& job, const char* part, const char* key) {
  const costmodel::Value* map = job.scenario.find(part);
  const costmodel::Value* value = map == nullptr ? nullptr : map->find(key);
  return value == nullptr ? "" : value->text;
}

ImportedJob of_swift(const std::string& more) {
  return import_swift_megatron(swift + more + "\n", "x.sh");
}

// Whether the job's stack has adapters of experts, as it is written.
std::string sparse_adapters(const ImportedJob& job) {
  const costmodel::Value* adapters = job.scenario.find("training")->find("stack")->find("adapters");
  return adapters == nullptr ? "" : adapters->find("experts")->text;
}

}  // namespace

TEST_CASE("a megatron command of ms-swift: its plan, its own defaults, the model by its name") {
  const ImportedJob job = of_swift("");
  CHECK(holds_swift_megatron(swift));
  CHECK(job.format == JobFormat::ms_swift);
  CHECK(job.recipes.back() == "Qwen3-30B-A3B");
  CHECK(at(job, "cluster", "devices") == "16");
  CHECK(at(job, "plan", "tp") == "2");
  CHECK(at(job, "plan", "sequence_parallel") == "true");
  CHECK(at(job, "plan", "ep") == "4");
  CHECK(at(job, "plan", "etp") == "1");
  CHECK(at(job, "plan", "dispatcher") == "alltoall");
  CHECK(at(job, "plan", "zero") == "1");
  CHECK(at(job, "plan", "recompute") == "full");
  CHECK(at(job, "training", "sequence") == "4096");
  CHECK(at(job, "training", "global_batch") == "16");
  CHECK(at(job, "training", "precision") == "bf16");
  CHECK(job.left_out.empty());
}

TEST_CASE("switches that are set the other way, and the length that no setting limits") {
  CHECK(at(of_swift(" --use_distributed_optimizer false"), "plan", "zero") == "0");
  CHECK(at(of_swift(" --recompute_granularity none"), "plan", "recompute") == "none");
  std::string text = swift;
  text.erase(text.find("--max_length 4096"), 17);
  const ImportedJob job = import_swift_megatron(text + "\n", "x.sh");
  const auto missing = std::ranges::find(job.missing, "training.sequence", &MissingKey::key);
  REQUIRE(missing != job.missing.end());
  CHECK(missing->otherwise == "2048");
}

TEST_CASE("adapters under ms-swift's names, and what is priced as something else") {
  const ImportedJob job =
      of_swift(" --tuner_type lora --lora_rank 16 --target_modules linear_qkv linear_proj");
  const costmodel::Value* tuning = job.scenario.find("training")->find("fine_tuning");
  REQUIRE(tuning != nullptr);
  CHECK(tuning->find("rank")->text == "16");
  CHECK(tuning->find("targets")->items.size() == 4);
  CHECK(sparse_adapters(of_swift(" --tuner_type lora")) == "true");
  CHECK(sparse_adapters(of_swift("")).empty());
  const ImportedJob narrow =
      of_swift(" --tuner_type lora --fp8_format e4m3 --fp8_param_gather true");
  CHECK(at(narrow, "training", "parameter_gather_precision").empty());
  CHECK(narrow.scenario.find("training")->find("fine_tuning")->find("base_precision")->text ==
        "fp8");
  // That stack's own router is fused, and its loss Transformer Engine's; ms-swift's are not.
  const ImportedJob sparse = of_swift(" --tuner_type lora --num_experts 8 --moe_router_topk 2");
  CHECK(sparse.scenario.find("training")->find("stack")->find("base")->text == "megatron-bridge");
  CHECK(sparse.scenario.find("training")->find("stack")->find("fused_router")->text == "false");
  CHECK(at(sparse, "training", "loss") == "native");
  CHECK(of_swift(" --tuner_type lora_llm").left_out.size() == 1);
  CHECK(fixtures::contains(of_swift(" --rlhf_type dpo").left_out.front(), "rlhf_type dpo"));
}

TEST_CASE("a script that only names ms-swift starts nothing") {
  CHECK_FALSE(holds_swift_megatron("swift sft --model a/b\n"));
  CHECK_THROWS_AS(import_swift_megatron("echo cli/_megatron/\n", "x.sh"), costmodel::ConfigError);
}

TEST_CASE("a YAML of NeMo 1: sizes, plan, batch and devices, values that name other settings") {
  const ImportedJob job = import_nemo_yaml(nemo, "x.yaml");
  CHECK(holds_nemo_yaml(nemo));
  CHECK(at(job, "model", "layers") == "80");
  CHECK(at(job, "model", "kv_heads") == "8");
  CHECK(at(job, "model", "gated_mlp") == "true");
  CHECK(at(job, "model", "normalization") == "rmsnorm");
  CHECK(at(job, "model", "tie_embeddings") == "false");
  CHECK(at(job, "model", "vocab") == "50257");
  CHECK(at(job, "cluster", "devices") == "128");
  CHECK(at(job, "plan", "vpp") == "5");
  CHECK(at(job, "plan", "zero") == "1");
  CHECK(at(job, "plan", "recompute") == "none");
  CHECK(at(job, "training", "precision") == "bf16");
  CHECK(job.scenario.find("training")->find("stack")->find("base")->text == "nemo-2024");
}

TEST_CASE("a YAML of LLaMA-Factory for mcore_adapter: Megatron's plan, the Trainer's batch") {
  const std::string yaml =
      "model_name_or_path: org/Qwen3-30B-A3B\nstage: sft\ndo_train: true\nfinetuning_type: full\n"
      "cutoff_len: 4096\ntemplate: x\nper_device_train_batch_size: 2\n"
      "gradient_accumulation_steps: 8\nbf16: true\ntensor_model_parallel_size: 2\n"
      "sequence_parallel: true\npipeline_model_parallel_size: 4\nuse_distributed_optimizer: true\n"
      "overlap_grad_reduce: true\nexpert_model_parallel_size: 2\nrecompute_granularity: full\n"
      "bias_activation_fusion: true\nmoe_grouped_gemm: true\n";
  CHECK(holds_factory_megatron(yaml));
  CHECK_FALSE(holds_factory_megatron("model_name_or_path: a/b\nfinetuning_type: lora\n"));
  ImportedJob job = import_factory_megatron(yaml, "x.yaml");
  CHECK(job.format == JobFormat::llama_factory);
  CHECK(job.left_out.empty());
  CHECK(job.recipes.back() == "Qwen3-30B-A3B");
  for (const auto& [key, value] : {std::pair{"tp", "2"},
                                   {"pp", "4"},
                                   {"ep", "2"},
                                   {"etp", "1"},
                                   {"zero", "1"},
                                   {"micro_batch", "2"},
                                   {"recompute", "full"},
                                   {"sequence_parallel", "true"},
                                   {"dispatcher", "allgather"}})
    CHECK_MESSAGE(at(job, "plan", key) == value, key);
  CHECK(at(job, "training", "sequence") == "4096");
  CHECK(at(job, "training", "precision") == "bf16");
  CHECK(at(job, "training", "gradient_precision") == "fp32");
  const costmodel::Value* stack = job.scenario.find("training")->find("stack");
  CHECK(stack->find("base")->text == "megatron-core-2026");
  CHECK(stack->find("fused_rotary")->text == "false");
  CHECK(job.scenario.find("training")->find("fine_tuning") == nullptr);
  set_cluster(job, "dgx-h100");
  assume_missing(job, 8);
  CHECK(at(job, "cluster", "devices") == "8");
  CHECK(at(job, "training", "global_batch") == "16");  // eight micro-batches of a replica
  CHECK(at(import_factory_megatron(yaml + "moe_token_dispatcher_type: alltoall\n", "x"), "plan",
           "dispatcher") == "alltoall");
}

TEST_CASE("mcore_adapter without a distributed optimizer; pairs and adapters of LLaMA-Factory") {
  const ImportedJob job = import_factory_megatron(
      "model_name_or_path: a/b\nstage: dpo\nfinetuning_type: lora\nlora_rank: 16\n"
      "tensor_model_parallel_size: 2\nper_device_train_batch_size: 3\n",
      "x.yaml");
  CHECK(at(job, "plan", "zero") == "0");
  CHECK(at(job, "plan", "micro_batch") == "6");
  CHECK(at(job, "training", "sequence") == "2048");
  CHECK(fixtures::contains(job.left_out.back(), "a reference model is not"));
  const costmodel::Value* tuning = job.scenario.find("training")->find("fine_tuning");
  CHECK(tuning->find("rank")->text == "16");
  CHECK(tuning->find("alpha")->text == "32");
  const ImportedJob bridge = import_factory_megatron(
      "model_name_or_path: a/b\nfinetuning_type: full\ntensor_model_parallel_size: 2\n"
      "expert_model_parallel_size: 1\nmixed_precision: bf16_mixed\n",
      "x.yaml");
  CHECK(at(bridge, "training", "precision") == "bf16");
  CHECK(bridge.scenario.find("training")->find("stack")->find("base")->text == "megatron-bridge");
  CHECK(bridge.left_out.empty());
}

TEST_CASE("what NeMo 1 recomputes, and the models that are not read") {
  std::string text = nemo;
  text.replace(text.find("granularity: null"), 17, "granularity: full");
  CHECK(at(import_nemo_yaml(text, "x.yaml"), "plan", "recompute") == "full");
  const ImportedJob plain = import_nemo_yaml(nemo + "  apply_rope_fusion: false\n", "x.yaml");
  const costmodel::Value* stack = plain.scenario.find("training")->find("stack");
  REQUIRE(stack->find("fused_rotary") != nullptr);
  CHECK(stack->find("fused_rotary")->text == "false");
  CHECK_THROWS_AS(import_nemo_yaml(nemo + "  encoder:\n    num_layers: 12\n", "x.yaml"),
                  costmodel::ConfigError);
  CHECK_FALSE(holds_nemo_yaml("model: llama-3-8b\ntrainer: x\n"));
}

}  // namespace argument_dialects_test
