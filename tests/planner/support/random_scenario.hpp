// Small scenarios of every kind, drawn at random: a model of each family, clusters with nodes in
// part, every stack, keys of the plan that are fixed and limits of the search, memory for few
// plans.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "tests/costmodel/support/fixtures.hpp"

namespace random_scenario {

// What is drawn from: each draw takes one number of the generator, so a seed says which.
class Draw {
 public:
  explicit Draw(std::uint32_t seed) : random_(seed) {}

  bool once_in(int n) { return random_.integer(1, n) == 1; }
  int number(int from, int to) { return random_.integer(from, to); }
  template <class T>
  T of(std::initializer_list<T> values) {
    return values.begin()[random_.integer(0, static_cast<int>(values.size()) - 1)];
  }
  std::string word(std::initializer_list<const char*> words) { return of(words); }
  std::string size(std::initializer_list<int> sizes) { return std::to_string(of(sizes)); }
  // Some of the words, in their order, perhaps none.
  std::string some(std::initializer_list<const char*> words) {
    std::string list;
    for (const char* one : words) {
      if (once_in(2)) list += (list.empty() ? "" : ", ") + std::string(one);
    }
    return "[" + list + "]";
  }

 private:
  fixtures::Random random_;
};

// A map of YAML on one line.
class Map {
 public:
  Map& add(const std::string& key, const std::string& value) {
    entries_.emplace_back(key, value);
    return *this;
  }
  Map& drop(const std::string& key) {
    std::erase_if(entries_, [&](const auto& entry) { return entry.first == key; });
    return *this;
  }
  std::string text() const {
    std::string list;
    for (const auto& [key, value] : entries_)
      list += (list.empty() ? "" : ", ") + key + ": " + value;
    return "{" + list + "}";
  }

 private:
  std::vector<std::pair<std::string, std::string>> entries_;
};

inline void add_experts(Map& model, Draw& draw) {
  const int experts = draw.of({4, 8, 16});
  model.add("experts", std::to_string(experts))
      .add("top_k", draw.size({1, 2, 4}))
      .add("expert_ffn_hidden", draw.size({512, 1024, 4096}));
  if (draw.once_in(3)) model.add("shared_experts", "1");
  if (draw.once_in(4)) model.add("mtp_layers", "1");
}

inline void add_attention(Map& model, int heads, Draw& draw) {
  model.add("heads", std::to_string(heads));
  if (draw.once_in(2)) model.add("kv_heads", std::to_string(heads % 2 == 0 ? draw.of({1, 2}) : 1));
}

// A latent attention has no biases.
inline void add_latent_attention(Map& model, int heads, Draw& draw) {
  model.add("heads", std::to_string(heads))
      .add("kv_lora_rank", draw.size({128, 512}))
      .add("q_lora_rank", draw.size({0, 384}));
}

inline std::string pattern(int layers, Draw& draw) {
  std::string letters = "M";
  for (int i = 1; i < layers; ++i) letters += draw.of({'M', 'M', '*', '-', 'E'});
  return letters;
}

inline std::string model_text(Draw& draw) {
  const int heads = draw.of({4, 6, 8, 12, 16}), hidden = heads * draw.of({64, 128, 256});
  const int layers = draw.number(1, 14);
  const std::string kind = draw.word({"gpt", "llama", "moe", "moe", "t5", "hybrid", "mamba"});
  Map model;
  model.add("kind", kind).add("hidden", std::to_string(hidden));
  model.add("vocab", draw.size({1000, 32000, 51200, 128256}));
  if (kind == "t5") {
    model.add("encoder_layers", std::to_string(draw.number(1, 8)))
        .add("decoder_layers", std::to_string(draw.number(1, 8)));
  } else if (kind == "hybrid") {
    const std::string letters = pattern(layers, draw);
    model.add("layer_pattern", letters).add("ssm_groups", draw.size({1, 2, 4}));
    if (letters.find('E') != std::string::npos) add_experts(model, draw);
  } else {
    model.add("layers", std::to_string(layers));
  }
  if (kind == "mamba") return model.add("ssm_groups", draw.size({1, 2, 4})).text();
  if (kind == "moe") {
    add_experts(model, draw);
    if (draw.once_in(2)) {
      model.add("first_dense_layers", std::to_string(draw.number(0, layers - 1)));
    } else if (draw.once_in(2)) {
      model.add("moe_every", draw.size({2, 3}));
    }
  }
  if (kind == "moe" && draw.once_in(3))
    add_latent_attention(model, heads, draw);
  else
    add_attention(model, heads, draw);
  model.add("ffn_hidden", std::to_string(hidden * draw.of({2, 4})));
  if (draw.once_in(3)) model.add("tie_embeddings", draw.word({"true", "false"}));
  return model.text();
}

// Keys of the plan that the scenario fixes.
inline Map plan_keys(Draw& draw, bool experts) {
  Map plan;
  const auto fixed = [&](const char* key, int once_in, std::initializer_list<const char*> values) {
    if (draw.once_in(once_in)) plan.add(key, draw.word(values));
  };
  fixed("tp", 4, {"1", "1", "2", "4"});
  fixed("pp", 4, {"1", "2", "2", "3", "4"});
  fixed("cp", 8, {"1", "1", "2"});
  fixed("cp_comm", 8, {"p2p", "a2a", "all_gather"});
  fixed("vpp", 8, {"1", "2", "3"});
  fixed("zero", 6, {"0", "0", "1", "2", "3"});
  fixed("micro_batch", 4, {"1", "2", "4", "auto"});
  fixed("sequence_parallel", 8, {"true", "false"});
  fixed("schedule", 10, {"gpipe", "1f1b", "interleaved", "serial", "v-half", "zero-bubble-v"});
  fixed("recompute", 5,
        {"none", "selective", "full", "{granularity: full, layers: 1}",
         "{granularity: full, layers: 2}", "{modules: [layernorm]}", "{modules: [layernorm, mlp]}",
         "{modules: [core_attn, layernorm, mlp]}"});
  fixed("rank_order", 10, {"tp-pp-dp-cp-ep", "dp-pp-tp-cp-ep"});
  fixed("dp_replicate", 10, {"2", "2", "4", "auto"});
  if (!experts) return plan;
  fixed("ep", 6, {"1", "2", "4"});
  fixed("etp", 8, {"1", "2"});
  fixed("dispatcher", 4, {"alltoall", "allgather", "deepep", "hybridep"});
  fixed("expert_overlap", 4, {"true", "false"});
  fixed("shared_expert_overlap", 6, {"true"});
  return plan;
}

inline Map search_limits(Draw& draw) {
  Map search;
  search.add("top", draw.size({1, 1, 3, 5}));
  if (draw.once_in(6)) search.add("max_tp", draw.size({1, 2}));
  if (draw.once_in(6)) search.add("max_pp", draw.size({1, 2, 4}));
  if (draw.once_in(4)) search.add("max_cp", draw.size({1, 2, 4}));
  if (draw.once_in(4)) search.add("max_ep", draw.size({1, 2}));
  if (draw.once_in(4)) search.add("max_vpp", draw.size({1, 2, 4}));
  if (draw.once_in(2)) search.add("max_micro_batch", draw.size({1, 2, 4}));
  if (draw.once_in(8)) search.add("zero", draw.some({"0", "1", "2", "3"}));
  if (draw.once_in(5)) search.add("recompute", draw.some({"none", "selective", "full"}));
  if (draw.once_in(8)) {
    search.add("schedules", draw.some({"gpipe", "1f1b", "interleaved", "zero-bubble-h1",
                                       "zero-bubble-h2", "zero-bubble-v", "v-half"}));
  }
  return search;
}

inline std::string training_text(Draw& draw, const std::string& cluster, bool two_stacks,
                                 bool experts) {
  const int batch = draw.of({1, 4, 6, 8, 12, 16, 16, 24, 32, 48, 64, 96});
  Map training;
  training.add("global_batch", std::to_string(batch));
  training.add("sequence", draw.size({256, 1024, 2048, 8192, 16384}));
  if (two_stacks && draw.once_in(2)) training.add("decoder_sequence", draw.size({128, 1024, 4096}));
  const bool volta = cluster.find("v100") != std::string::npos;
  const bool narrow = cluster == "dgx-gb200" || cluster.find("h100") != std::string::npos;
  training.add("precision", cluster == "laptop-cpu" ? "fp32"
                            : volta                 ? draw.word({"fp16", "fp32"})
                            : narrow                ? draw.word({"bf16", "bf16", "fp8"})
                                                    : draw.word({"bf16", "fp16"}));
  training.add("stack",
               draw.word({"alpa-2022",          "deepspeed-2021",     "fms-fsdp",
                          "internevo",          "llama-3-internal",   "llm-foundry",
                          "megascale",          "megatron-2021",      "megatron-2022",
                          "megatron-bridge",    "megatron-bridge",    "megatron-core-2024",
                          "megatron-core-2025", "megatron-core-2026", "megatron-deepspeed-2022",
                          "nanotron",           "nemo-2025",          "oneflow-2021",
                          "shardplan-cpu",      "torchtitan",         "zero-bubble-fork",
                          "zero-bubble-fork"}));
  if (draw.once_in(4)) training.add("loss", draw.word({"unfused", "native", "te", "flash"}));
  if (draw.once_in(4)) training.add("optimizer", "sgd");
  if (experts && draw.once_in(4)) {
    const std::string load = draw.word({"1.3", "{dirichlet: 1}", "{skew: 0.5}"});
    training.add(load == "1.3" ? "expert_imbalance" : "expert_load", load);
  }
  if (experts && draw.once_in(4)) training.add("capacity_factor", draw.word({"0.5", "2"}));
  if (draw.once_in(3)) {
    Map overlap;
    for (const char* key : {"overlap_grad_reduce", "overlap_param_gather", "tp_comm_overlap",
                            "pp_overlap", "async_tp"}) {
      if (draw.once_in(2)) overlap.add(key, draw.word({"true", "false"}));
    }
    if (draw.once_in(2)) {
      overlap.add("cuda_graph", draw.word({"true", "false", "[attn]", "[attn, mlp]",
                                           "[attn, mlp, moe_router, moe_preprocess]"}));
    }
    training.add("overlap", overlap.text());
  }
  return training.text();
}

// A scenario's YAML, by its parts.
struct Scenario {
  std::string model, cluster, devices, training;
  Map plan, search;
  // With the memory of its device's kind, or with so many bytes of it.
  std::string yaml(const std::string& device = "", std::int64_t bytes = 0) const {
    Map map;
    map.add("base", cluster).add("devices", devices);
    if (bytes > 0) {
      map.add("device", Map()
                            .add("base", device)
                            .add("memory", Map().add("bytes", std::to_string(bytes)).text())
                            .text());
    }
    return "model: " + model + "\ncluster: " + map.text() + "\ntraining: " + training +
           "\nplan: " + plan.text() + "\nsearch: " + search.text() + "\n";
  }
};

inline Scenario draw_scenario(Draw& draw) {
  Scenario s;
  s.model = model_text(draw);
  s.cluster = draw.word({"selene", "dgx-a100", "dgx-h100", "dgx-h100", "dlperf-v100", "laptop-cpu",
                         "dgx-gb200", "pcie-8x-a100", "zero-bubble-a100", "aws-p5"});
  s.devices = draw.size({1, 2, 3, 4, 4, 6, 8, 8, 8, 12, 16, 16});
  const bool experts = s.model.find("experts") != std::string::npos;
  s.training = training_text(draw, s.cluster, s.model.find("t5") != std::string::npos, experts);
  s.plan = plan_keys(draw, experts);
  // Recomputing is mostly quicker than sending activations to the host.
  if (s.training.find("offload") != std::string::npos && draw.once_in(2))
    s.plan.drop("recompute").add("recompute", "none").drop("pp").add("pp", "1");
  s.search = search_limits(draw);
  return s;
}

}  // namespace random_scenario
