// Arguments of Megatron-DeepSpeed, which has names and an engine of its own.
#include "planner/frameworks/megatron_deepspeed.hpp"

#include <doctest/doctest.h>

#include <string>

#include "planner/frameworks/import_megatron.hpp"
#include "planner/frameworks/megatron_script.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace megatron_deepspeed_test {

namespace {

const std::string sizes =
    "--num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 "
    "--micro-batch-size 2 --global-batch-size 64 ";

planner::ImportedJob imported(const std::string& more) {
  return planner::import_megatron(planner::read_megatron_script(sizes + more, "x.sh"));
}

std::string at(const planner::ImportedJob& job, const char* part, const char* key,
               const char* inner = nullptr) {
  const costmodel::Value* value = job.scenario.find(part)->find(key);
  if (value != nullptr && inner != nullptr) value = value->find(inner);
  return value == nullptr ? "" : value->text;
}

std::string left_out(const planner::ImportedJob& job) {
  std::string all;
  for (const std::string& line : job.left_out) all += line + "\n";
  return all;
}

}  // namespace

TEST_CASE("names of the fork are read as Megatron-LM's") {
  const auto job = imported(
      "--normalization rmsnorm --num-key-value-heads 4 --pad-vocab-size-to 250880 "
      "--data-impl mmap --no-query-key-layer-scaling");
  CHECK(at(job, "model", "normalization") == "rmsnorm");
  CHECK(at(job, "model", "kv_heads") == "4");
  CHECK(at(job, "model", "vocab") == "250880");
  CHECK(left_out(job).empty());
  CHECK(at(job, "training", "stack", "base") == "megatron-core-2026");
}

TEST_CASE("DeepSpeed's engine: its stages of ZeRO, and the stack whose layers it runs") {
  const auto one = imported("--fp16 --deepspeed --zero-stage 1 --checkpoint-activations");
  CHECK(at(one, "plan", "zero") == "1");
  CHECK(at(one, "plan", "recompute") == "full");
  CHECK(at(one, "training", "stack", "base") == "megatron-deepspeed-2022");
  CHECK(at(one, "training", "stack", "attention").empty());  // the stack's own: unfused
  CHECK(fixtures::contains(planner::to_yaml(one), "the stack is megatron-deepspeed-2022"));
  CHECK(left_out(one).empty());
  // No pipeline shards gradients or parameters, so another stack has the later stages.
  const auto three = imported("--fp16 --deepspeed --zero-stage 3 --no-pipeline-parallel");
  CHECK(at(three, "plan", "zero") == "3");
  CHECK(at(three, "training", "stack", "base") == "deepspeed-2021");
  CHECK(at(imported("--bf16 --zero-stage 0"), "plan", "zero") == "1");
  CHECK(at(imported("--fp16 --zero-stage 0"), "plan", "zero") == "0");
  CHECK_THROWS_WITH(imported("--fp16 --zero-stage 4"), doctest::Contains("no stage of ZeRO"));
}

TEST_CASE("a stage that stands in DeepSpeed's JSON alone is missing") {
  const auto job = imported("--fp16 --deepspeed --deepspeed_config ds.json");
  CHECK(at(job, "plan", "zero") == "REPLACE");
  CHECK(fixtures::contains(planner::to_yaml(job), "--set plan.zero=N"));
  CHECK(at(imported("--fp16 --zero-stage $STAGE"), "plan", "zero") == "REPLACE");
}

TEST_CASE("Ulysses is context parallelism that deals out heads") {
  const auto job = imported(
      "--fp16 --zero-stage 3 --ds-sequence-parallel-size 4 "
      "--use-flash-attn-triton");
  CHECK(at(job, "plan", "cp") == "4");
  CHECK(at(job, "plan", "cp_comm") == "a2a");
  CHECK(at(job, "training", "stack", "context_parallel") == "true");
  CHECK(at(job, "training", "stack", "attention") == "flash");
}

TEST_CASE("newer forks have sequence parallelism and selective recomputation") {
  const auto job = imported(
      "--fp16 --zero-stage 1 --tensor-model-parallel-size 2 --sequence-parallel "
      "--recompute-activations");
  CHECK(at(job, "training", "stack", "sequence_parallel") == "true");
  CHECK(at(job, "training", "stack", "selective_recompute") == "true");
  CHECK(at(imported("--fp16 --zero-stage 1"), "training", "stack", "sequence_parallel").empty());
}

TEST_CASE("a log prints a stage of ZeRO for jobs without DeepSpeed") {
  planner::MegatronArguments log;
  log.from_log = true;
  log.list = {{"--zero-stage", {"1.0"}, {}, ""}};
  CHECK_FALSE(planner::is_run_by_deepspeed(log));
  log.list.push_back({"--deepspeed", {}, {}, ""});
  CHECK(planner::is_run_by_deepspeed(log));
}

}  // namespace megatron_deepspeed_test
