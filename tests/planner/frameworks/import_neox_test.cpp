// GPT-NeoX's configurations as scenarios.
#include "planner/frameworks/import_neox.hpp"

#include <doctest/doctest.h>

#include "costmodel/base/error.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace import_neox_test {

using namespace planner;

namespace {

const std::string small =
    "{\n  \"pipe_parallel_size\": 4,\n  \"model-parallel-size\": 2,\n  \"num_layers\": 44,\n"
    "  \"hidden_size\": 6144,\n  \"num_attention_heads\": 64,\n  \"seq_length\": 2048,\n"
    "  \"pos_emb\": \"rotary\",\n  \"rotary_pct\": 0.25,\n  \"no_weight_tying\": true,\n"
    "  \"gpt_j_residual\": true,\n  \"tokenizer_type\": \"HFTokenizer\",\n"
    "  \"zero_optimization\": {\"stage\": 1},\n  \"train_micro_batch_size_per_gpu\": 4,\n"
    "  \"checkpoint_activations\": true,\n  \"fp16\": {\"enabled\": true},\n";

std::string at(const ImportedJob& job, const char* part, const char* key) {
  const costmodel::Value* map = job.scenario.find(part);
  const costmodel::Value* value = map == nullptr ? nullptr : map->find(key);
  return value == nullptr ? "" : value->text;
}

}  // namespace

TEST_CASE("model, plan and precision; dashes are underscores; the batch by devices") {
  const ImportedJob job =
      import_neox(small + "  \"gradient_accumulation_steps\": 32\n}\n", "20B.yml");
  CHECK(at(job, "model", "layers") == "44");
  CHECK(at(job, "model", "ffn_hidden") == "24576");
  CHECK(at(job, "model", "vocab") == "50432");  // 50,277 rows for two ranks
  CHECK(at(job, "model", "parallel_block") == "true");
  CHECK(at(job, "plan", "tp") == "2");
  CHECK(at(job, "plan", "pp") == "4");
  CHECK(at(job, "plan", "zero") == "1");
  CHECK(at(job, "plan", "recompute") == "full");
  CHECK(at(job, "training", "precision") == "fp16");
  CHECK(job.accumulation == 32);
}

TEST_CASE("the number of devices follows from a batch") {
  const ImportedJob job = import_neox(small + "  \"train_batch_size\": 96\n}\n", "20B.yml");
  CHECK(at(job, "training", "global_batch") == "96");
  CHECK(at(job, "plan", "dp") == "24");
  CHECK(at(job, "cluster", "devices") == "192");
}

TEST_CASE("a llama, and what changes a plan changes the scenario") {
  const std::string text =
      "{\"pipe_parallel_size\": 1, \"num_layers\": 32, \"hidden_size\": 4096, "
      "\"num_attention_heads\": 32, \"norm\": \"rmsnorm\", \"pos_emb\": \"rotary\", "
      "\"mlp_type\": \"llama\", \"tokenizer_type\": \"SPMTokenizer\", "
      "\"make_vocab_size_divisible_by\": 1, \"precision\": \"bfloat16\"}\n";
  const ImportedJob job = import_neox(text, "7B.yml");
  CHECK(at(job, "model", "kind") == "llama");
  CHECK(at(job, "model", "ffn_hidden") == "11008");
  CHECK(at(job, "model", "vocab") == "32000");
  CHECK(at(job, "training", "precision") == "bf16");
}

TEST_CASE("a gated layer has a third of the width that is written: Llama 2 7B's parameters") {
  const std::string sizes =
      "{\"pipe_parallel_size\": 1, \"num_layers\": 32, \"hidden_size\": 4096, "
      "\"num_attention_heads\": 32, \"norm\": \"rmsnorm\", \"pos_emb\": \"rotary\", "
      "\"no_weight_tying\": true, \"make_vocab_size_divisible_by\": 1, "
      "\"activation\": \"swiglu\"";
  ImportedJob job = import_neox(
      sizes + ", \"intermediate_size\": 32768, \"mlp_multiple_of\": 256}\n", "llama2/7B.yml");
  CHECK(at(job, "model", "ffn_hidden") == "11008");
  CHECK(at(job, "model", "vocab") == "32000");  // by its folder, since no tokenizer is written
  CHECK(job.left_out.empty());
  set_cluster(job, "dgx-h100");
  assume_missing(job, 8);
  CHECK(parameter_count(scenarios::read(to_yaml(job)).model) == 6'738'415'616);
  // Of four times the model's width where none is written.
  CHECK(at(import_neox(sizes + "}\n", "x.yml"), "model", "ffn_hidden") == "5461");
  CHECK(at(import_neox(sizes + "}\n", "x.yml"), "model", "vocab") == "50257");
  // The older layer's, as written.
  CHECK(at(import_neox(sizes + ", \"mlp_type\": \"llama\", \"intermediate_size\": 14336}\n", "x"),
           "model", "ffn_hidden") == "14336");
}

TEST_CASE("FlashAttention and sequence parallelism change the scenario") {
  const ImportedJob job = import_neox(
      small + "  \"attention_config\": [[[\"flash\"], 44]], \"sequence_parallel\": true\n}\n",
      "20B.yml");
  CHECK(job.scenario.find("training")->find("stack")->find("attention")->text == "flash");
  CHECK(at(job, "plan", "sequence_parallel") == "true");
}

TEST_CASE("Mamba in all layers has a state of 16 and time steps by a sixteenth of the width") {
  const ImportedJob job = import_neox(
      "{\"pipe_parallel_size\": 0, \"model_parallel_size\": 1, \"num_layers\": 24, "
      "\"hidden_size\": 768, \"num_attention_heads\": 12, \"norm\": \"rmsnorm\", "
      "\"attention_config\": [[[\"mamba\"], 24]]}\n",
      "130M.yml");
  CHECK(at(job, "model", "kind") == "mamba");
  CHECK(at(job, "model", "heads") == "1536");
  CHECK(at(job, "model", "state_size") == "16");
  CHECK(at(job, "model", "dt_rank") == "48");
  CHECK(at(job, "plan", "pp") == "1");
}

TEST_CASE("enabled decides the precision; dropout, rotary positions and checkpoints are read") {
  const auto job = [](const std::string& more) { return import_neox(small + more + "}\n", "x"); };
  CHECK(at(job("\"bf16\": {\"enabled\": true}, \"fp16.enabled\": false"), "training",
           "precision") == "bf16");
  CHECK(at(job(""), "model", "dropout") == "0");
  CHECK(at(job("\"hidden_dropout\": 0.1"), "model", "dropout") == "0.1");
  CHECK(at(job("\"rotary_emb_base\": 500000"), "model", "rotary_base") == "500000");
  CHECK(job("").left_out.empty());
  CHECK(job("\"checkpoint_num_layers\": 2").left_out.size() == 1);
  CHECK(job("\"partition_activations\": true").left_out.size() == 1);
}

TEST_CASE("other mixers than attention, and experts, are refused") {
  for (const char* other : {"\"attention_config\": [[[\"mamba\"], 12], [[\"global\"], 12]]",
                            "\"attention_config\": [[[\"rwkv\"], 12]]", "\"num_experts\": 8"})
    CHECK_THROWS_AS(import_neox(small + other + "\n}\n", "x.yml"), costmodel::ConfigError);
  CHECK(holds_neox(small));
  CHECK_FALSE(holds_neox("torchrun pretrain_gpt.py --num-layers 2 --num-attention-heads 2"));
  // Megatron-LM's arguments of an encoder and a decoder as YAML.
  CHECK_FALSE(
      holds_neox("MODEL_ARGS:\n  --encoder-num-layers: 12\n  --num-attention-heads: 12\n"
                 "  --tensor-model-parallel-size: 2\n"));
}

}  // namespace import_neox_test
