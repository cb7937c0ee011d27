// Which program a file is of, by its keys and commands; its settings in the Trainer's words.
#include "planner/frameworks/trainer_words.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "costmodel/base/error.hpp"

namespace trainer_words_test {

using planner::JobFormat;
using planner::trainer_format;

namespace {

planner::TrainerJob read(const std::string& text) {
  const auto format = trainer_format(text);
  REQUIRE(format);
  return planner::read_trainer_job(text, "x", *format);
}

}  // namespace

TEST_CASE("each program by its keys or its command") {
  const std::vector<std::pair<std::string, JobFormat>> texts{
      {"compute_environment: LOCAL_MACHINE\n", JobFormat::accelerate},
      {"base_model: a/b\n", JobFormat::axolotl},
      {"model_name_or_path: a/b\nstage: sft\n", JobFormat::llama_factory},
      {"model_name_or_path: a/b\nmax_length: 8\n", JobFormat::trainer},
      {"model: a/b\ncutoff_len: 8\npeft_config:\n  name: lora\n", JobFormat::llama_factory},
      {"CUDA_VISIBLE_DEVICES=0 \\\nswift sft --model a/b\n", JobFormat::ms_swift},
      {"torchrun swift/cli/sft.py --model a/b\n", JobFormat::ms_swift},
      {"llamafactory-cli train --stage sft\n", JobFormat::llama_factory},
      {"accelerate launch sft.py --model_name_or_path a/b\n", JobFormat::trainer},
      {"deepspeed train.py --model_name_or_path a/b --finetuning_type lora\n",
       JobFormat::llama_factory}};
  for (const auto& [text, format] : texts) CHECK_MESSAGE(trainer_format(text) == format, text);
  CHECK_FALSE(trainer_format("python train.py --num-layers 8\n"));
  CHECK_FALSE(trainer_format("swift sft 'not closed"));
}

TEST_CASE("names, defaults and devices of each") {
  auto axolotl = read("base_model: a/b\nmicro_batch_size: 2\nwandb_project: w\nnew_key: 3\n");
  CHECK(axolotl.fields.number("per_device_train_batch_size", 1) == 2);
  CHECK(axolotl.fields.word("model_name_or_path", "") == "a/b");
  CHECK(axolotl.fields.rest() == std::vector<std::string>{"new_key = 3"});
  CHECK(axolotl.defaults.sequence == 512);
  auto swift = read("NPROC_PER_NODE=2 swift sft --model a/b --target_modules q_proj k_proj --x\n");
  CHECK(swift.devices == 2);
  CHECK(swift.fields.find("lora_target_modules")->values.size() == 2);
  CHECK(swift.fields.word("x", "") == "true");
  CHECK(swift.defaults.checkpointing);
  auto launched = read("deepspeed --num_gpus 3 x.py --model_name_or_path a/b --bf16=false\n");
  CHECK(launched.devices == 3);
  CHECK_FALSE(launched.fields.flag("bf16", true));
  auto fsdp = read("distributed_type: FSDP\nfsdp_config: {fsdp_offload_params: true}\n");
  CHECK(fsdp.fields.flag("fsdp_config.offload_params", false));
}

TEST_CASE("a module that a launcher starts is no setting's value") {
  planner::TrainerJob job = planner::read_trainer_job(
      "accelerate launch --num_processes 8 -m trl.scripts.sft --model_name_or_path org/model "
      "--per_device_train_batch_size 2 --warmup_steps -1\n",
      "x.sh", planner::JobFormat::trainer);
  CHECK(job.fields.number("num_processes", 1) == 8);
  CHECK(job.fields.word("warmup_steps", "") == "-1");
}

TEST_CASE("a command whose settings are in a file names it") {
  CHECK_THROWS_WITH_AS(read("llamafactory-cli train examples/lora.yaml\n"),
                       doctest::Contains("the settings are in 'examples/lora.yaml'"),
                       costmodel::ConfigError);
}

}  // namespace trainer_words_test
