// Commands of verl as scenarios: the actor's update.
#include "planner/frameworks/import_verl.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "tests/costmodel/support/fixtures.hpp"

namespace import_verl_test {

using namespace planner;

namespace {

const std::string fsdp =
    "set -x\nMODEL=${MODEL:-Qwen/Qwen2.5-7B-Instruct}\npython3 -m verl.trainer.main_ppo \\\n"
    " data.train_batch_size=1024 data.max_prompt_length=512 data.max_response_length=1024 \\\n"
    " actor_rollout_ref.model.path=$MODEL actor_rollout_ref.rollout.n=5 \\\n"
    " actor_rollout_ref.actor.ppo_mini_batch_size=256 \\\n"
    " actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=16 \\\n"
    " actor_rollout_ref.model.enable_gradient_checkpointing=True \\\n"
    " trainer.n_gpus_per_node=8 trainer.nnodes=2";

std::string at(const ImportedJob& job, const char* part, const char* key) {
  const costmodel::Value* map = job.scenario.find(part);
  const costmodel::Value* value = map == nullptr ? nullptr : map->find(key);
  return value == nullptr ? "" : value->text;
}

}  // namespace

TEST_CASE("FSDP: a mini-batch of prompts with all responses is an iteration") {
  const ImportedJob job = import_verl(fsdp + "\n", "run.sh");
  CHECK(at(job, "cluster", "devices") == "16");
  CHECK(at(job, "training", "sequence") == "1536");
  CHECK(at(job, "training", "global_batch") == "1280");
  CHECK(at(job, "plan", "micro_batch") == "16");
  CHECK(at(job, "plan", "zero") == "3");
  CHECK(at(job, "plan", "recompute") == "full");
  CHECK(at(job, "training", "stack") == "peft");
  CHECK(job.recipes == std::vector<std::string>{"Qwen2-7B-Instruct"});
}

TEST_CASE("a model that is in a variable is what the script is called after") {
  std::string text = fsdp;
  text.erase(text.find("MODEL=$"), text.find("python3") - text.find("MODEL=$"));
  CHECK(import_verl(text + "\n", "a/run_moonlight16b.sh").recipes.back() == "run_moonlight16b");
}

TEST_CASE("Megatron's sizes, Ulysses and adapters change the scenario") {
  const ImportedJob megatron =
      import_verl(fsdp +
                      " actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2 "
                      "actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=4\n",
                  "run.sh");
  CHECK(at(megatron, "plan", "tp") == "2");
  CHECK(at(megatron, "plan", "pp") == "4");
  CHECK(at(megatron, "training", "stack") == "megatron-core-2025");
  const ImportedJob ulysses =
      import_verl(fsdp + " actor_rollout_ref.actor.ulysses_sequence_parallel_size=4\n", "run.sh");
  CHECK(at(ulysses, "plan", "cp") == "4");
  CHECK(at(ulysses, "plan", "cp_comm") == "a2a");
  const ImportedJob lora = import_verl(fsdp + " actor_rollout_ref.model.lora_rank=64\n", "run.sh");
  CHECK(lora.scenario.find("training")->find("fine_tuning")->find("rank")->text == "64");
}

TEST_CASE("adapters with Ulysses keep peft's stack; Megatron-LM's optimizer may be on the host") {
  const ImportedJob both =
      import_verl(fsdp +
                      " actor_rollout_ref.model.lora_rank=64 "
                      "actor_rollout_ref.actor.ulysses_sequence_parallel_size=2\n",
                  "run.sh");
  CHECK(both.scenario.find("training")->find("stack")->find("base")->text == "peft");
  CHECK(both.scenario.find("training")->find("fine_tuning")->find("rank")->text == "64");
  const std::string host =
      fsdp +
      " actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2 "
      "+actor_rollout_ref.actor.optim.override_optimizer_config.optimizer_cpu_offload=True";
  CHECK(at(import_verl(host + "\n", "run.sh"), "plan", "offload") == "optimizer");
  const ImportedJob half = import_verl(
      host +
          " +actor_rollout_ref.actor.optim.override_optimizer_config.optimizer_offload_fraction=0.5"
          "\n",
      "run.sh");
  CHECK(std::ranges::any_of(half.left_out, [](const std::string& line) {
    return line.find("optimizer_offload_fraction = 0.5") != std::string::npos;
  }));
}

TEST_CASE("supervised fine-tuning has fields of its own") {
  const ImportedJob job = import_verl(
      "torchrun --nproc_per_node=8 -m verl.trainer.fsdp_sft_trainer "
      "model.partial_pretrain=google/gemma-2b data.max_length=2048 data.train_batch_size=64 "
      "data.micro_batch_size_per_gpu=4\n",
      "sft.sh");
  CHECK(at(job, "training", "sequence") == "2048");
  CHECK(at(job, "training", "global_batch") == "64");
  CHECK(at(job, "plan", "micro_batch") == "4");
  CHECK(holds_verl("python3 -m verl.trainer.main_ppo"));
}

TEST_CASE("supervised fine-tuning with Ulysses, at the top or among its engine's settings") {
  for (const char* field :
       {"ulysses_sequence_parallel_size=2", "engine.ulysses_sequence_parallel_size=2"}) {
    const ImportedJob job = import_verl(
        std::string("torchrun --nproc_per_node=8 -m verl.trainer.fsdp_sft_trainer "
                    "model.partial_pretrain=google/gemma-2b data.train_batch_size=64 ") +
            field + " use_remove_padding=true\n",
        "sft.sh");
    CHECK(at(job, "plan", "cp") == "2");
    CHECK(at(job, "plan", "cp_comm") == "a2a");
    CHECK(at(job, "plan", "micro_batch") == "4");
    CHECK(at(job, "training", "global_batch") == "64");
    CHECK(job.left_out.empty());
  }
}

}  // namespace import_verl_test
