// Model keys from Megatron-LM's arguments.
#include "planner/frameworks/megatron_model.hpp"

#include <doctest/doctest.h>

#include "planner/frameworks/megatron_script.hpp"

namespace megatron_model_test {

namespace {

std::string model_key(const std::string& arguments, const std::string& key) {
  const auto run = planner::read_megatron_script(
      "--num-layers 4 --hidden-size 1024 --num-attention-heads 16 " + arguments, "x.sh");
  planner::MegatronImport in(run);
  planner::read_megatron_model(in);
  const auto* value = in.job.scenario.find("model")->find(key);
  return value == nullptr ? "" : value->text;
}

const std::string experts = "--num-experts 8 --ffn-hidden-size 512 ";

}  // namespace

TEST_CASE("experts in odd layers, sinks, and numbers of the model") {
  CHECK(model_key(experts + "--moe-layer-freq '([0,1]*2)'", "moe_every") == "2");
  CHECK(model_key(experts + "--moe-layer-freq \"'([0,1]*2)'\"", "moe_every") == "2");
  CHECK(model_key(experts + "--moe-layer-freq '([0,1]*2)'", "moe_offset") == "1");
  CHECK(model_key(experts + "--moe-layer-freq '([0]*3+[1]*1)'", "moe_offset") == "3");
  CHECK(model_key("--softmax-type learnable", "attention_sinks") == "true");
  CHECK(model_key("--norm-epsilon 1e-6", "norm_epsilon") == "1e-6");
  CHECK(model_key("--apply-layernorm-1p", "layernorm_1p") == "true");
  const std::string yarn =
      "--multi-latent-attention --position-embedding-type rope --rotary-scaling-factor 40 "
      "--mscale 0.707 ";
  CHECK(model_key(yarn, "rope_scaling_type") == "yarn");
  CHECK(model_key(yarn, "rope_mscale") == "0.707");
  CHECK(model_key(yarn + "--rope-type rope", "rope_scaling_type").empty());
  CHECK(model_key("--position-embedding-type rope --rotary-seq-len-interpolation-factor 4",
                  "rope_scaling_type") == "linear");
}

TEST_CASE("gated delta nets in place of attention, gates, and windows, by layer") {
  const std::string delta = "--experimental-attention-variant gated_delta_net ";
  CHECK(model_key(delta + "--linear-attention-freq 4", "attention_pattern") == "DDDF");
  CHECK(model_key(delta + "--linear-attention-freq '([1]*3+[0]*1)'", "attention_pattern") ==
        "DDDF");
  CHECK(model_key(delta + "--linear-attention-freq 2 --linear-num-key-heads 4",
                  "linear_num_key_heads") == "4");
  CHECK(model_key(delta + "--linear-attention-freq 2", "linear_num_value_heads") == "32");
  CHECK_THROWS_WITH(model_key(delta + "--linear-attention-freq [1,0]", "kind"),
                    doctest::Contains("is no pattern of 4 layers"));
  CHECK_THROWS_WITH(model_key("--linear-attention-freq 2 --window-size (127,0)", "kind"),
                    doctest::Contains("does not go with --window-size"));
  CHECK(model_key("--attention-output-gate", "attention_gate") == "true");
  CHECK(model_key(experts + "--moe-shared-expert-gate", "shared_expert_gate") == "true");
  CHECK(model_key("--window-size (127,0) --window-attn-skip-freq [1,0,1,1]", "attention_pattern") ==
        "SFSS");
}

TEST_CASE("a size that is written and 0 is refused where it stands") {
  CHECK_THROWS_WITH(model_key("--num-attention-heads 0", "heads"),
                    doctest::Contains("--num-attention-heads '0' is not 1 or more"));
  CHECK_THROWS_WITH(model_key("--tensor-model-parallel-size 0", "heads"),
                    doctest::Contains("x.sh:1:"));
}

TEST_CASE("sizes, and what Megatron-LM takes where none are given") {
  CHECK(model_key("", "ffn_hidden") == "4096");
  CHECK(model_key("--swiglu", "ffn_hidden") == "2688");  // 8h/3 in multiples of 64
  CHECK(model_key("--group-query-attention --num-query-groups 4", "kv_heads") == "4");
  CHECK(model_key("--num-query-groups 4", "kv_heads") == "16");
  CHECK(model_key("--kv-channels 128", "head_dim") == "128");
  CHECK(model_key("--squared-relu", "activation") == "squared-relu");
  CHECK(model_key("--vocab-size 511 --tokenizer-type NullTokenizer", "vocab") == "511");
  CHECK(model_key("", "vocab") == "REPLACE");
  CHECK(model_key("--position-embedding-type rope --rotary-base 500000", "rotary_base") ==
        "500000");
  CHECK(model_key("--rotary-base 500000", "rotary_base").empty());
  CHECK(model_key("--multi-latent-attention", "kv_lora_rank") == "32");
}

TEST_CASE("a window of attention, in every layer, in all but one of so many, or as a list says") {
  CHECK(model_key("", "sliding_window").empty());
  CHECK(model_key("--window-size 127,0", "sliding_window") == "128");
  CHECK(model_key("--window-size '(127, 0)'", "attention_pattern").empty());
  CHECK(model_key("--window-size 127,0 --window-attn-skip-freq 2", "attention_pattern") == "SF");
  CHECK(model_key("--window-size 127,0 --window-attn-skip-freq '([1]*3+[0]*1)'",
                  "attention_pattern") == "SSSF");
  CHECK(model_key("--window-size 127,0 --window-attn-skip-freq '[1,1,1,1]'", "attention_pattern")
            .empty());
  CHECK(model_key("--window-size 127,127", "sliding_window").empty());  // left out, and told
  CHECK_THROWS_WITH(
      model_key("--window-size 127,0 --window-attn-skip-freq '[1,0]'", "sliding_window"),
      doctest::Contains("is no pattern of 4 layers"));
}

TEST_CASE("experts") {
  CHECK(model_key(experts, "kind") == "moe");
  CHECK(model_key(experts, "expert_ffn_hidden") == "512");
  CHECK(model_key(experts, "top_k") == "2");
  CHECK(model_key(experts + "--moe-layer-freq '([0]*1+[1]*3)'", "first_dense_layers") == "1");
  CHECK(model_key(experts + "--moe-layer-freq 2", "moe_every") == "2");
  CHECK(model_key(experts + "--moe-shared-expert-intermediate-size 1024", "shared_experts") == "2");
  CHECK(model_key(experts + "--moe-router-score-function sigmoid", "router_score") == "sigmoid");
  CHECK_THROWS_WITH(model_key(experts + "--moe-layer-freq '[1,1,0,1]'", "kind"),
                    doctest::Contains("in no regular order"));
}

}  // namespace megatron_model_test
