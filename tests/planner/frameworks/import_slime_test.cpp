// Scripts of slime as scenarios: the actor's update.
#include "planner/frameworks/import_slime.hpp"

#include <doctest/doctest.h>

namespace import_slime_test {

using namespace planner;

namespace {

const std::string script =
    "source \"${SCRIPT_DIR}/models/qwen3-4B.sh\"\nPERF_ARGS=(\n  --tensor-model-parallel-size 2\n"
    "  --sequence-parallel\n  --recompute-granularity full\n  --recompute-method uniform\n"
    "  --recompute-num-layers 1\n  --max-tokens-per-gpu 9216\n)\n"
    "ray job submit -- python3 train.py --actor-num-nodes 2 --actor-num-gpus-per-node 8 \\\n"
    "  ${MODEL_ARGS[@]} --rollout-batch-size 32 --n-samples-per-prompt 8 \\\n"
    "  --rollout-max-response-len 8192 --global-batch-size 256 ${PERF_ARGS[@]}";

std::string at(const ImportedJob& job, const char* part, const char* key) {
  const costmodel::Value* map = job.scenario.find(part);
  const costmodel::Value* value = map == nullptr ? nullptr : map->find(key);
  return value == nullptr ? "" : value->text;
}

}  // namespace

TEST_CASE("Megatron's plan, slime's lengths, batch and devices, the model of the sourced script") {
  const ImportedJob job = import_slime(script + "\n", "run.sh");
  CHECK(at(job, "cluster", "devices") == "16");
  CHECK(at(job, "plan", "tp") == "2");
  CHECK(at(job, "training", "sequence") == "8192");
  CHECK(at(job, "training", "global_batch") == "256");
  CHECK(at(job, "training", "precision") == "bf16");
  CHECK(at(job, "plan", "zero") == "1");  // its own default, which no argument has
  CHECK(job.recipes.back() == "qwen3-4B");
  CHECK(holds_slime(script));
}

TEST_CASE("what changes a plan changes the scenario") {
  const ImportedJob job = import_slime(script + " --pipeline-model-parallel-size 2\n", "run.sh");
  CHECK(at(job, "plan", "pp") == "2");
}

TEST_CASE("supervised: a sequence is as long as what a replica holds") {
  std::string text = script;
  text.replace(text.find("--rollout-max-response-len 8192"), 31, "--loss-type sft_loss");
  const ImportedJob job = import_slime(text + "\n", "run.sh");
  CHECK(at(job, "training", "sequence") == "9216");
  CHECK(at(job, "plan", "micro_batch") == "1");
}

}  // namespace import_slime_test
