// Plans that torchtitan refuses, by the key at fault, with reason and remedy.
#include "planner/frameworks/torchtitan_rules.hpp"

#include <doctest/doctest.h>

#include <string>

#include "tests/costmodel/support/fixtures.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace torchtitan_rules_test {

using fixtures::contains;
using planner::TorchtitanVersion;

namespace {

struct Case {
  std::string plan;
  std::string training{};
  std::string model = "llama-3.1-8b";
  TorchtitanVersion version = TorchtitanVersion::toml;
  std::string precision = "bf16";
};

std::string refused(const Case& c) {
  const auto s = scenarios::read(
      "model: " + c.model +
      "\ncluster: {base: dgx-gb200, devices: 16}\n"
      "training: {sequence: 8192, precision: " +
      c.precision +
      ", stack: {base: torchtitan, zero_bubble: true, "
      "experts: {flex_dispatcher: true, source: x}, recompute_modules: true}" +
      (c.training.find("global_batch") == std::string::npos ? ", global_batch: 64" : "") +
      c.training + "}\nplan: {" + c.plan + "}\n");
  const auto found = planner::torchtitan_violations(s, costmodel::resolve_plan(s), c.version);
  return found.empty()
             ? ""
             : found.front().key + ": " + found.front().reason + "; " + found.front().remedy;
}

}  // namespace

TEST_CASE("degrees of data, tensor and context parallelism") {
  CHECK(refused({"dp: 16, zero: 3"}).empty());
  CHECK(refused({"dp: 16, zero: 0"}).empty());
  CHECK(refused({"tp: 8, dp: 2, zero: 2, sequence_parallel: true"}).empty());
  CHECK(contains(refused({"dp: 16, zero: 1"}),
                 "zero: torchtitan 0.2.2: FSDP shards parameters and gradients as well; set zero"));
  CHECK(contains(refused({"tp: 2, dp: 8, zero: 0, sequence_parallel: true"}),
                 "zero: torchtitan 0.2.2: DDP has not supported more than one dimension"));
  CHECK(contains(refused({"tp: 2, dp: 8, zero: 3, sequence_parallel: false"}),
                 "sequence_parallel: torchtitan 0.2.2: tensor parallelism shards the sequence"));
  CHECK(refused({"tp: 2, dp: 8, zero: 3, sequence_parallel: false", "", "llama-3.1-8b",
                 TorchtitanVersion::python})
            .empty());
  CHECK(contains(refused({"tp: 16, zero: 3, sequence_parallel: true"}),
                 "must divide 8 heads of keys and values"));
  CHECK(refused({"cp: 2, dp: 8, cp_comm: all_gather, zero: 3"}).empty());
  // Without FSDP nothing casts to 16 bits, and one rank has none.
  CHECK(contains(refused({"tp: 8, pp: 2, dp: 1, zero: 3, sequence_parallel: true"}),
                 "zero: torchtitan 0.2.2: one rank shards nothing"));
  CHECK(contains(refused({"tp: 8, pp: 2, dp: 1, zero: 0, sequence_parallel: true"}),
                 "precision: torchtitan 0.2.2: mixed precision with tensor or pipeline ranks"));
  CHECK(refused({"tp: 8, pp: 2, dp: 1, zero: 0, sequence_parallel: true", "", "llama-3.1-8b",
                 TorchtitanVersion::python})
            .empty());
  CHECK(contains(refused({"cp: 2, dp: 8, cp_comm: a2a, zero: 3"}), "cp_comm: torchtitan 0.2.2:"));
  CHECK(contains(refused({"cp: 2, dp: 8, cp_comm: all_gather, zero: 3", "", "llama-3.1-8b",
                          TorchtitanVersion::python}),
                 "cp: torchtitan: context parallelism is a transform"));
}

TEST_CASE("pipelines") {
  CHECK(refused({"pp: 4, dp: 4, zero: 3"}).empty());
  CHECK(refused({"pp: 4, vpp: 2, dp: 4, zero: 3"}).empty());
  CHECK(contains(refused({"pp: 4, dp: 4, zero: 3, schedule: zero-bubble-h1"}),
                 "schedule: torchtitan 0.2.2: it has GPipe, 1F1B, Interleaved1F1B and"));
  CHECK(contains(refused({"pp: 8, dp: 2, micro_batch: 8, zero: 3"}),
                 "pp: torchtitan 0.2.2: there must be as many micro-batches (4) as stages (8)"));
  CHECK(
      contains(refused({"pp: 4, vpp: 2, dp: 4, micro_batch: 2, zero: 3", "", "llama-3.1-8b"}), ""));
}

TEST_CASE("models, precisions, recomputation") {
  CHECK(contains(refused({"dp: 16, zero: 3", "", "{base: gpt3-13b, max_positions: 8192}"}),
                 "model: torchtitan 0.2.2: it has no flavor of these sizes; it has these: llama"));
  CHECK(contains(refused({"dp: 16, zero: 3", "", "{base: deepseek-v2-lite, mtp_layers: 1}"}),
                 "model: torchtitan 0.2.2: its deepseek_v3 predicts one token"));
  CHECK(contains(refused({"dp: 16, zero: 3", "", "qwen3-8b", TorchtitanVersion::python}),
                 "model: torchtitan: only its recipes of Llama 3 are known here"));
  CHECK(refused({"dp: 16, zero: 3", ", overlap: {compile: true, async_tp: true}"}).empty());
  CHECK(contains(
      refused({"tp: 2, dp: 8, zero: 3, sequence_parallel: true", ", overlap: {async_tp: true}"}),
      "overlap: torchtitan 0.2.2: asynchronous tensor parallelism is made by"));
  CHECK(contains(refused({"dp: 16, zero: 3", ", optimizer: sgd"}), "optimizer: "));
  CHECK(
      contains(refused({"dp: 16, zero: 3", ", gradient_precision: bf16"}), "gradient_precision: "));
  CHECK(refused({"dp: 16, zero: 3", ", gradient_precision: bf16", "llama-3.1-8b",
                 TorchtitanVersion::python})
            .empty());
  CHECK(refused({"dp: 16, zero: 3, recompute: selective"}).empty());
  CHECK(contains(refused({"dp: 16, zero: 3, recompute: selective", "", "llama-3.1-8b",
                          TorchtitanVersion::python}),
                 "recompute: "));
  CHECK(contains(refused({"dp: 16, zero: 3, recompute: {granularity: full, layers: 2}"}),
                 "takes every layer"));
  CHECK(contains(refused({"dp: 16, zero: 3, recompute: {modules: [mlp]}"}),
                 "keeps every second product"));
}

TEST_CASE("experts") {
  const std::string moe = "qwen3-30b-a3b";
  CHECK(refused({"dp: 16, zero: 3, ep: 8", "", moe}).empty());
  CHECK(
      refused({"tp: 2, dp: 8, ep: 16, etp: 1, zero: 3, sequence_parallel: true", "", moe}).empty());
  CHECK(
      contains(refused({"tp: 2, dp: 8, ep: 1, etp: 1, zero: 3, sequence_parallel: true", "", moe}),
               "etp: torchtitan 0.2.2: without expert parallelism experts are split as tp"));
  CHECK(contains(refused({"dp: 16, zero: 0, ep: 8", "", moe}),
                 "ep: torchtitan 0.2.2: expert ranks must divide the 1 that shard the weights"));
  CHECK(contains(refused({"dp: 16, zero: 3, ep: 8, dispatcher: hybridep", "", moe}),
                 "dispatcher: torchtitan 0.2.2: expert_parallel_comm_backend is standard or"));
  CHECK(refused({"dp: 16, zero: 3, ep: 8, dispatcher: deepep", "", "deepseek-v2-lite"}).empty());
  CHECK(contains(refused({"dp: 16, zero: 3, ep: 8", ", capacity_factor: 2", moe}),
                 "capacity_factor: "));
}

TEST_CASE("narrow precisions") {
  const auto toml = TorchtitanVersion::toml;
  const std::string moe = "qwen3-30b-a3b",
                    tensor = "tp: 2, dp: 8, zero: 3, sequence_parallel: true";
  CHECK(refused({"dp: 16, zero: 3", "", "llama-3.1-8b", toml, "fp8"}).empty());
  CHECK(refused({"dp: 16, ep: 4, zero: 3", "", moe, toml, "fp8"}).empty());
  CHECK(refused({"pp: 4, dp: 4, zero: 3", "", "llama-3.1-8b", toml, "fp8"}).empty());
  CHECK(contains(refused({"pp: 4, dp: 4, zero: 3", "", moe, toml, "fp8"}),
                 "pp: torchtitan 0.2.2: fp8 experts do not support pipeline parallelism"));
  CHECK(contains(refused({"cp: 2, dp: 8, cp_comm: p2p, zero: 3", "", moe, toml, "fp8"}),
                 "cp: torchtitan 0.2.2: fp8 experts do not support context parallelism"));
  CHECK(refused({tensor, "", "llama-3.1-8b", toml, "mxfp8"}).empty());
  CHECK(contains(refused({tensor, ", overlap: {compile: true}", "llama-3.1-8b", toml, "mxfp8"}),
                 "tp: torchtitan 0.2.2: mxfp8 does not support tensor parallelism where"));
  CHECK(contains(refused({"dp: 16, zero: 3", "", "llama-3.1-8b", toml, "nvfp4"}),
                 "precision: torchtitan 0.2.2: there is no nvfp4 training"));
  CHECK(contains(refused({"dp: 16, zero: 3", "", "llama-3.1-8b", TorchtitanVersion::python, "fp8"}),
                 "precision: torchtitan: fp8 is a transform of the model there"));
}

TEST_CASE("what its deepseek_v3 and qwen3 cannot do") {
  const std::string lite = "deepseek-v2-lite";
  CHECK(contains(refused({"cp: 2, cp_comm: all_gather, ep: 8, dp: 8, zero: 3", "", lite}),
                 "cp: torchtitan 0.2.2: context parallelism needs sdpa"));
  CHECK(contains(refused({"tp: 2, ep: 8, etp: 2, dp: 8, zero: 3, sequence_parallel: true, "
                          "dispatcher: deepep",
                          "", lite}),
                 "etp: torchtitan 0.2.2: DeepEP does not go"));
  CHECK(contains(refused({"ep: 8, dp: 16, zero: 3, dispatcher: deepep", "", "qwen3-30b-a3b"}),
                 "dispatcher: torchtitan 0.2.2: only deepseek_v3"));
  CHECK(contains(refused({"pp: 2, dp: 8, zero: 3", "", "qwen3-8b"}),
                 "pp: torchtitan 0.2.2: its qwen3 has no pipeline"));
}

}  // namespace torchtitan_rules_test
