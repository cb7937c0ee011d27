#include "costmodel/config/synonyms.hpp"

#include <doctest/doctest.h>

#include "costmodel/machine/cluster_reader.hpp"
#include "costmodel/model/model_keys.hpp"
#include "costmodel/plan/plan_keys.hpp"
#include "costmodel/scenario/training_reader.hpp"

namespace synonyms_test {

using namespace costmodel;

TEST_CASE("other words mean keys, in any case and with dashes") {
  CHECK(meant_key("batch") == "training.global_batch");
  CHECK(meant_key("Global-Batch-Size") == "training.global_batch");
  CHECK(meant_key("seq_length") == "training.sequence");
  CHECK(meant_key("tensor_model_parallel_size") == "plan.tp");
  CHECK(meant_key("mbs") == "plan.micro_batch");
  CHECK(meant_key("num_gpus") == "cluster.devices");
  CHECK(meant_key("tp") == "plan.tp");
  CHECK(meant_key("colour") == "");
  CHECK(meant_key("") == "");
}

TEST_CASE("a word means a key by its last part, and a key is no other word for itself") {
  CHECK(means("batch_size", "global_batch"));
  CHECK_FALSE(means("global_batch", "global_batch"));
  CHECK_FALSE(means("batch_size", "micro_batch"));
  CHECK_FALSE(means("colour", "global_batch"));
}

TEST_CASE("what is meant is a key that there is") {
  for (const std::string word : {"gbs",
                                 "seqlen",
                                 "dtype",
                                 "framework",
                                 "total_tokens",
                                 "world_size",
                                 "gpus_per_node",
                                 "gpu",
                                 "mbs",
                                 "tp_size",
                                 "pp_size",
                                 "dp_size",
                                 "cp_size",
                                 "ep_size",
                                 "expert_tensor_parallel",
                                 "virtual_pipeline",
                                 "gradient_checkpointing",
                                 "zero_stage",
                                 "pipeline_schedule",
                                 "num_layers",
                                 "d_model",
                                 "n_head",
                                 "n_kv_heads",
                                 "d_ff",
                                 "vocab_size",
                                 "num_experts",
                                 "topk"}) {
    CAPTURE(word);
    const std::string key = meant_key(word);
    CHECK(key != "");
    bool known = false;
    for (const auto described : {model_keys, cluster_keys, training_keys, plan_keys})
      for (const KeyText& one : described()) known |= one.name == key;
    CHECK(known);
  }
}

TEST_CASE("a word of several is found whole") {
  CHECK((has_word("gpu gpu_type", "gpu") && has_word("gpu gpu_type", "gpu_type")));
  CHECK_FALSE((has_word("gpu gpu_type", "type") || has_word("gpu gpu_type", "gpu gpu_type")));
  CHECK_FALSE(has_word("", "gpu"));
}

}  // namespace synonyms_test
