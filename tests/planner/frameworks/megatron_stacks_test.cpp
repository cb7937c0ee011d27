// Runs of Megatron-LM's pretrain_t5.py as scenarios.
#include "planner/frameworks/megatron_stacks.hpp"

#include <doctest/doctest.h>

#include <string>

#include "planner/frameworks/import_megatron.hpp"
#include "planner/frameworks/megatron_script.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace megatron_stacks_test {

using fixtures::config_error;
using fixtures::contains;
using planner::ImportedJob;

namespace {

// In the manner of its examples/t5.
const std::string sizes =
    "torchrun --nproc-per-node 8 pretrain_t5.py --encoder-num-layers 12 --decoder-num-layers 8 \\\n"
    "  --hidden-size 768 --num-attention-heads 12 --kv-channels 64 --ffn-hidden-size 3072 \\\n"
    "  --encoder-seq-length 512 --decoder-seq-length 128 --max-position-embeddings 512 \\\n"
    "  --micro-batch-size 4 --global-batch-size 64 --bf16 --vocab-size 30592 \\\n"
    "  --vocab-extra-ids 100 --tensor-model-parallel-size 2 ";

ImportedJob imported(const std::string& more) {
  return planner::import_megatron(planner::read_megatron_script(sizes + more + "\n", "t5.sh"));
}

costmodel::Scenario scenario_of(ImportedJob job) {
  planner::set_cluster(job, "dgx-a100");
  for (const auto& missing : job.missing) CHECK_MESSAGE(false, missing.key);
  return scenarios::read(to_yaml(job));
}

}  // namespace

TEST_CASE("an encoder and a decoder with layers and sequences of their own, split at a rank") {
  const ImportedJob job =
      imported("--pipeline-model-parallel-size 4 --pipeline-model-parallel-split-rank 2");
  CHECK(job.left_out.empty());
  const auto s = scenario_of(job);
  CHECK(s.model.encoder_layers == 12);
  CHECK(s.model.decoder_layers == 8);
  CHECK(s.model.positions == costmodel::Positions::learned);
  CHECK(s.training.sequence == 512);
  CHECK(s.training.decoder_sequence == 128);
  const auto plan = resolve_plan(s);
  CHECK(plan.pp == 4);
  CHECK(plan.stage_layers == std::vector{6, 6, 4, 4});
}

TEST_CASE("ranks of the encoder beside those of the pipeline, as core 0.9 has them") {
  const ImportedJob job = imported(
      "--pipeline-model-parallel-size 1 --encoder-pipeline-model-parallel-size 3 "
      "--encoder-tensor-model-parallel-size 1");
  REQUIRE(job.left_out.size() == 1);
  CHECK(contains(job.left_out.front(), "--encoder-tensor-model-parallel-size 1"));
  const auto plan = resolve_plan(scenario_of(job));
  CHECK(plan.pp == 4);
  CHECK(plan.stage_layers == std::vector{4, 4, 4, 8});
}

TEST_CASE("one rank splits nothing; a split that Megatron-LM would refuse has its place") {
  const ImportedJob job = imported("--pipeline-model-parallel-split-rank 1");
  REQUIRE(job.left_out.size() == 1);
  CHECK(contains(job.left_out.front(), "there is one pipeline rank"));
  CHECK(resolve_plan(scenario_of(job)).pp == 1);
  CHECK(contains(config_error([] {
                   scenario_of(
                       imported("--pipeline-model-parallel-size 4 "
                                "--pipeline-model-parallel-split-rank 1"));
                 }),
                 "split_rank 1 leaves the decoder's 8 layers 3 ranks"));
  CHECK(contains(config_error([] {
                   imported(
                       "--pipeline-model-parallel-size 4 "
                       "--pipeline-model-parallel-split-rank two");
                 }),
                 "t5.sh:5:"));
}

TEST_CASE("other models are as before: a log's encoder sizes are its layers") {
  const auto gpt = planner::read_megatron_script(
      "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 8 --encoder-num-layers 8 \\\n"
      "  --hidden-size 512 --num-attention-heads 4 --seq-length 64 --encoder-seq-length 64\n",
      "gpt.sh");
  CHECK_FALSE(planner::has_two_stacks(gpt));
  CHECK(planner::import_megatron(gpt).scenario.find("plan")->find("split_rank") == nullptr);
}

TEST_CASE("a decoder with a vision tower is a decoder") {
  const auto run = planner::read_megatron_script(
      "--num-layers 4 --hidden-size 1024 --num-attention-heads 16 --seq-length 256 "
      "--decoder-seq-length 512 --micro-batch-size 1",
      "x.sh");
  CHECK_FALSE(planner::has_two_stacks(run));
  const auto job = planner::import_megatron(run);
  CHECK(job.scenario.find("model")->find("kind")->text == "gpt");
  CHECK(job.scenario.find("training")->find("sequence")->text == "512");
  REQUIRE_FALSE(job.notes.empty());
}

}  // namespace megatron_stacks_test
