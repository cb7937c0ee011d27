// What torchtitan is told of a plan: every key is one that it has, and every number multiplies.
#include "planner/frameworks/export_torchtitan.hpp"

#include <doctest/doctest.h>

#include <string>

#include "tests/costmodel/support/fixtures.hpp"
#include "tests/planner/support/field_lists.hpp"
#include "tests/planner/support/torchtitan_cases.hpp"

namespace export_torchtitan_test {

using fixtures::contains;
using planner::TorchtitanVersion;

namespace {

std::string value_of(const planner::TorchtitanExport& exported, const std::string& name) {
  for (const auto& setting : exported.settings)
    if (torchtitan::name_of(setting) == name) return setting.value;
  return "absent";
}

planner::TorchtitanExport exported(const torchtitan::Job& job,
                                   TorchtitanVersion version = TorchtitanVersion::toml) {
  const auto s = torchtitan::scenario(job);
  return planner::export_torchtitan(s, costmodel::resolve_plan(s), version);
}

}  // namespace

TEST_CASE("every key is one that torchtitan declares, set once") {
  const torchtitan::Job moe{.model = "deepseek-v3",
                            .plan = "tp: 8, ep: 16, dp: 2, pp: 1, zero: 3, etp: 1",
                            .training = ", precision: fp8, parameter_gather_precision: fp8"};
  for (const auto& job : {torchtitan::Job{}, torchtitan::Job{.plan = "pp: 4, vpp: 2, zero: 3"},
                          torchtitan::Job{.plan = "cp: 2, zero: 2, cp_comm: p2p"}, moe})
    torchtitan::check_keys(exported(job), TorchtitanVersion::toml);
  for (const auto& job : {torchtitan::Job{}, torchtitan::Job{.plan = "pp: 4, vpp: 2, zero: 3"}})
    torchtitan::check_keys(exported(job, TorchtitanVersion::python), TorchtitanVersion::python);
}

TEST_CASE("sharding, batches and stages in the words of the TOML") {
  const auto fsdp = exported({.plan = "tp: 2, dp: 8, micro_batch: 2, zero: 3"});
  CHECK(value_of(fsdp, "parallelism.data_parallel_shard_degree") == "8");
  CHECK(value_of(fsdp, "parallelism.data_parallel_replicate_degree") == "1");
  CHECK(value_of(fsdp, "parallelism.fsdp_reshard_after_forward") == "\"always\"");
  CHECK(value_of(fsdp, "training.local_batch_size") == "2");
  CHECK(value_of(fsdp, "training.global_batch_size") == "64");
  CHECK(value_of(fsdp, "activation_checkpoint.mode") == "\"none\"");
  const auto hybrid = exported({.plan = "dp: 16, zero: 3, dp_replicate: 2"});
  CHECK(value_of(hybrid, "parallelism.data_parallel_shard_degree") == "8");
  CHECK(value_of(hybrid, "parallelism.data_parallel_replicate_degree") == "2");
  const auto ddp = exported({.plan = "dp: 16, zero: 0, recompute: full"});
  CHECK(value_of(ddp, "parallelism.data_parallel_replicate_degree") == "16");
  CHECK(value_of(ddp, "parallelism.data_parallel_shard_degree") == "1");
  CHECK(value_of(ddp, "activation_checkpoint.mode") == "\"full\"");
  const auto pipeline = exported({.plan = "pp: 8, dp: 2, zero: 3, micro_batch: 2"});
  CHECK(value_of(pipeline, "training.local_batch_size") == "32");
  CHECK(value_of(pipeline, "parallelism.pipeline_parallel_microbatch_size") == "2");
  const std::string modules = value_of(pipeline, "parallelism.module_fqns_per_model_part");
  CHECK(
      modules.starts_with("[[\"tok_embeddings\", \"layers.0\", \"layers.1\", \"layers.2\", "
                          "\"layers.3\"], [\"layers.4\", "));
  CHECK(modules.ends_with("\"layers.30\", \"layers.31\", \"norm\", \"output\"]]"));
}

TEST_CASE("the scripts bring the configuration and start it on every node") {
  const auto toml = exported({});
  CHECK(contains(toml.script, "for torchtitan 0.2.2, as shardplan planned it"));
  CHECK(contains(toml.script, "<<'TOML'\n[metrics]\nlog_freq = 1\n\n[model]\nname = \"llama3\"\n"));
  CHECK(contains(toml.script, "torchrun --nproc-per-node 8 --nnodes 2 \\\n"));
  CHECK(contains(toml.script, "-m torchtitan.train --job.config_file \"$config\" \"$@\"\n"));
  const auto python = exported({}, TorchtitanVersion::python);
  CHECK(contains(python.script, "    config.model = build_model_config(\"8B\", seq_len=8192)\n"));
  CHECK(contains(python.script, "    config.training.num_tokens_per_train_step = 524288\n"));
  CHECK(contains(python.script, "--module shardplan_plan --config plan \"$@\"\n"));
}

TEST_CASE("what was priced and has no word is named") {
  const auto notes =
      exported({.training = ", overlap: {overlap_grad_reduce: false, compile: true}"}).notes;
  REQUIRE(notes.size() == 2);
  CHECK(notes.front() == "overlap.overlap_grad_reduce is not exported: torchtitan always does it");
  const auto other = exported({.plan = "dp: 16, zero: 3", .stack = "megatron-core-2026"}).notes;
  CHECK(contains(other.front(), "priced with the kernels of "));
}

}  // namespace export_torchtitan_test
