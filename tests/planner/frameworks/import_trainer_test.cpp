// Fine-tuning jobs of Hugging Face's Trainer and what is built on it, as scenarios that evaluate.
#include "planner/frameworks/import_trainer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "costmodel/base/error.hpp"
#include "planner/frameworks/trainer_words.hpp"
#include "tests/costmodel/support/scenarios.hpp"
#include "tests/run_program.hpp"

namespace import_trainer_test {

using costmodel::Scenario;
using planner::ImportedJob;

namespace {

ImportedJob job_of(const std::string& text) {
  const auto format = planner::trainer_format(text);
  REQUIRE(format);
  return planner::import_trainer(text, "x", *format);
}

// With what --cluster and --set add.
Scenario scenario_of(ImportedJob job, const char* model) {
  planner::set_cluster(job, "dgx-h100");
  planner::set_key(job, std::string("model=") + model, {});
  planner::assume_missing(job, 8);
  CHECK_MESSAGE(job.missing.empty(), (job.missing.empty() ? "" : job.missing.front().key));
  return scenarios::read(to_yaml(job));
}

const costmodel::Value& tuning_of(const ImportedJob& job) {
  return *job.scenario.find("training")->find("fine_tuning");
}

bool has_line_with(const std::vector<std::string>& lines, const char* word) {
  return std::ranges::any_of(
      lines, [&](const std::string& line) { return line.find(word) != std::string::npos; });
}

}  // namespace

TEST_CASE("axolotl: QLoRA by FSDP with parameters on the host") {
  const auto job = job_of(
      "base_model: casperhansen/llama-3-70b-fp16\nadapter: qlora\nload_in_4bit: true\n"
      "lora_r: 8\nlora_alpha: 16\nlora_dropout: 0.05\nlora_target_linear: true\n"
      "sequence_len: 512\nmicro_batch_size: 1\ngradient_accumulation_steps: 4\nbf16: auto\n"
      "gradient_checkpointing: true\nfsdp:\n  - full_shard\n  - auto_wrap\n"
      "fsdp_config:\n  fsdp_offload_params: true\n  fsdp_sharding_strategy: FULL_SHARD\n");
  CHECK(job.recipes == std::vector<std::string>{"llama-3-70b-fp16"});
  CHECK(job.left_out.empty());
  const Scenario s = scenario_of(job, "llama-3-70b");
  CHECK(s.cluster.devices == 8);
  CHECK(s.training.global_batch == 32);
  CHECK(s.training.sequence == 512);
  CHECK(s.plan.zero == 3);
}

TEST_CASE("LLaMA-Factory: ZeRO by the name of DeepSpeed's file, its own defaults, targets") {
  const auto job = job_of(
      "deepspeed --num_gpus 3 src/train_bash.py --deepspeed ds_z3_config.json --stage sft "
      "--do_train --model_name_or_path meta-llama/Meta-Llama-3-8B --finetuning_type lora "
      "--lora_target q_proj,v_proj --cutoff_len 1024 --per_device_train_batch_size 1 "
      "--gradient_accumulation_steps 2 --fp16\n");
  const auto& training = *job.scenario.find("training");
  CHECK(training.find("global_batch")->text == "6");
  CHECK(training.find("precision")->text == "fp16");
  const auto& tuning = *training.find("fine_tuning");
  CHECK(tuning.find("method")->text == "lora");
  CHECK(tuning.find("rank")->text == "8");
  CHECK(tuning.find("alpha")->text == "16");
  REQUIRE(tuning.find("targets")->items.size() == 2);
  CHECK(tuning.find("targets")->items[1].text == "v");
  CHECK(job.scenario.find("plan")->find("zero")->text == "3");
  CHECK(job.scenario.find("plan")->find("recompute")->text == "full");
  CHECK(job.recipes == std::vector<std::string>{"Llama-3-8B"});
  CHECK(scenario_of(job, "llama-3-8b").cluster.devices == 3);
  CHECK(job_of("model_name_or_path: a/b\nstage: dpo\nfinetuning_type: full\n")
            .left_out.front()
            .starts_with("stage = dpo: priced as supervised"));
}

TEST_CASE(
    "LLaMA-Factory's second format: maps of what is trained, sharded, quantized and optimized") {
  const std::string begin =
      "model: org/x\nmodel_class: llm\ntrain_dataset: d.yaml\ncutoff_len: 512\n";
  const auto full = job_of(begin +
                           "micro_batch_size: 2\ndist_config:\n  name: fsdp2\n  dcp_path: null\n"
                           "optim_config:\n  name: muon\n  wd: 0.1\n");
  CHECK(full.format == planner::JobFormat::llama_factory);
  CHECK(full.left_out.empty());
  const auto plan_of = [](const ImportedJob& job) { return *job.scenario.find("plan"); };
  CHECK(tuning_of(full).find("method")->text == "full");
  CHECK(full.scenario.find("training")->find("optimizer")->text == "muon");
  CHECK(plan_of(full).find("zero")->text == "3");
  CHECK(plan_of(full).find("micro_batch")->text == "2");
  CHECK(plan_of(full).find("recompute")->text == "full");
  const auto lora =
      job_of(begin +
             "peft_config:\n  name: lora\n  r: 16\n  lora_alpha: 64\n  target_modules: [q_proj]\n"
             "quant_config:\n  name: bnb\ndist_config:\n  name: deepspeed\n  config_file: "
             "z/ds_z2_config.json\n"
             "enable_activation_checkpointing: false\nglobal_batch_size: 32\n");
  CHECK(tuning_of(lora).find("method")->text == "qlora");
  CHECK(tuning_of(lora).find("rank")->text == "16");
  CHECK(tuning_of(lora).find("alpha")->text == "64");
  CHECK(tuning_of(lora).find("dropout")->text == "0.05");
  CHECK(tuning_of(lora).find("targets")->items.size() == 1);
  CHECK(plan_of(lora).find("zero")->text == "2");
  CHECK(plan_of(lora).find("micro_batch")->text == "1");
  CHECK(plan_of(lora).find("recompute")->text == "none");
  CHECK(lora.scenario.find("training")->find("global_batch")->text == "32");
  const auto context =
      job_of(begin + "cp_size: 2\ndist_config: {name: fsdp2, reshard_after_forward: false}\n");
  CHECK(plan_of(context).find("cp_comm")->text == "a2a");
  CHECK(plan_of(context).find("zero")->text == "2");
  CHECK_THROWS_WITH_AS(job_of(begin + "peft_config:\n  name: freeze\n"),
                       doctest::Contains("'freeze' has no model here"), costmodel::ConfigError);
}

TEST_CASE("a file of TRL's settings is called after its method, or its folder is") {
  const auto micro = [](const char* text, const char* file) {
    const auto format = planner::trainer_format(text);
    REQUIRE(format);
    const auto job = planner::import_trainer(text, file, *format);
    return job.scenario.find("plan")->find("micro_batch")->text;
  };
  const char* const trl = "model_name_or_path: a/b\nper_device_train_batch_size: 1\nbeta: 0.1\n";
  CHECK(micro(trl, "recipes/x/dpo/config.yaml") == "2");
  CHECK(micro(trl, "recipes/x/sft/config.yaml") == "1");
  CHECK(micro("model: a/b\ncutoff_len: 8\ndist_config: {name: fsdp2}\n", "train_lora_dpo.yaml") ==
        "2");
  // LLaMA-Factory's first format has a setting for it.
  CHECK(micro("model_name_or_path: a/b\nstage: sft\nper_device_train_batch_size: 1\n",
              "dpo/x.yaml") == "1");
}

TEST_CASE("accelerate: FSDP 2, hybrid groups, tensor and context parallelism") {
  const std::string begin =
      "distributed_type: FSDP\nmixed_precision: bf16\nnum_machines: 1\nnum_processes: 8\n"
      "fsdp_config: {fsdp_version: 2, fsdp_reshard_after_forward: true, "
      "fsdp_activation_checkpointing: true}\n";
  auto job = job_of(begin);
  CHECK(job.scenario.find("plan")->find("zero")->text == "3");
  CHECK(job.scenario.find("plan")->find("recompute")->text == "full");
  CHECK(std::ranges::any_of(job.missing,
                            [](const auto& key) { return key.key == "training.sequence"; }));
  job = job_of(begin +
               "parallelism_config:\n  parallelism_config_dp_replicate_size: 2\n"
               "  parallelism_config_dp_shard_size: 2\n  parallelism_config_tp_size: 2\n");
  planner::set_key(job, "training.sequence=4096", {});
  const Scenario s = scenario_of(job, "llama-3.1-8b");
  CHECK(s.plan.tp == 2);
  CHECK(s.plan.dp == 4);
  CHECK(s.training.global_batch == 32);
  job = job_of(
      "distributed_type: DEEPSPEED\nnum_processes: 8\ndeepspeed_config: {zero_stage: 3, "
      "offload_optimizer_device: nvme, offload_param_device: disk}\n");
  planner::set_key(job, "training.sequence=4096", {});
  const Scenario drives = scenario_of(job, "llama-3.1-8b");
  CHECK(drives.plan.zero == 3);
  CHECK(drives.plan.offload.optimizer_on_drives());
  CHECK(has_line_with(job.left_out, "only cpu and nvme have a model"));
}

TEST_CASE("accelerate: a strategy of FSDP by its number in torch's enumeration") {
  const auto plan_of = [](const std::string& strategy) {
    return *job_of(
                "distributed_type: FSDP\nnum_machines: 2\nnum_processes: 16\n"
                "fsdp_config: {fsdp_sharding_strategy: " +
                strategy + "}\n")
                .scenario.find("plan");
  };
  const char* const zero[] = {"3", "2", "0", "3", "2"};
  for (int number = 1; number <= 5; ++number) {
    const costmodel::Value plan = plan_of(std::to_string(number));
    CHECK_MESSAGE(plan.find("zero")->text == zero[number - 1], number);
    CHECK_MESSAGE((plan.find("dp_replicate") != nullptr) == (number > 3), number);
  }
  CHECK(plan_of("HYBRID_SHARD").find("dp_replicate")->text == "2");
}

TEST_CASE("ms-swift: its defaults; 8 bits; what has no model here is refused at its place") {
  auto job = job_of(
      "NPROC_PER_NODE=2 swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora "
      "--torch_dtype bfloat16 --max_length 2048 --quant_bits 8 --target_modules all-linear "
      "--gradient_accumulation_steps $(expr 16 / 2) --deepspeed zero2\n");
  CHECK(job.recipes == std::vector<std::string>{"Qwen2-7B-Instruct"});
  CHECK(job.scenario.find("training")->find("fine_tuning")->find("base_precision")->text == "fp8");
  CHECK(scenario_of(job, "qwen2-7b").training.global_batch == 16);
  CHECK_THROWS_WITH_AS(job_of("model_name_or_path: a/b\nfinetuning_type: freeze\n"),
                       doctest::Contains("x:2:1: 'freeze' has no model here"),
                       costmodel::ConfigError);
  CHECK_THROWS_WITH_AS(job_of("base_model: a/b\nlora_alpha: many\nadapter: lora\n"),
                       doctest::Contains("'many' is no number"), costmodel::ConfigError);
  CHECK_THROWS_WITH_AS(job_of("distributed_type: MEGATRON_LM\n"),
                       doctest::Contains("with Megatron-LM is not read"), costmodel::ConfigError);
}

TEST_CASE("axolotl: no adapter without the word, PEFT's usual targets, its older batch") {
  const std::string file = "base_model: a/b\nmicro_batch_size: 2\nlora_r: 8\n";
  CHECK(tuning_of(job_of(file + "adapter:\n")).find("method")->text == "full");
  const auto usual = job_of(file + "adapter: lora\nlora_target_linear: false\n");
  CHECK(tuning_of(usual).find("targets")->items.size() == 2);
  CHECK(has_line_with(usual.notes, "PEFT's usual"));
  const auto all = job_of(file + "adapter: lora\nlora_target_linear: true\n");
  CHECK(tuning_of(all).find("targets")->text == "all-linear");
  CHECK(job_of(file + "batch_size: 8\n").accumulation == 4);
  CHECK(job_of(file + "batch_size: 8\ngradient_accumulation_steps: 2\n").accumulation == 2);
}

TEST_CASE("OFT is priced as LoRA that multiplies as much; eight bits on the host as Adam") {
  const auto oft = job_of("model_name_or_path: a/b\nfinetuning_type: oft\noft_block_size: 64\n");
  CHECK(tuning_of(oft).find("method")->text == "lora");
  CHECK(tuning_of(oft).find("rank")->text == "32");
  CHECK(has_line_with(oft.left_out, "priced as LoRA of rank 32"));
  const std::string file = "base_model: a/b\noptimizer: adamw_bnb_8bit\n";
  CHECK(job_of(file).scenario.find("training")->find("optimizer")->text == "adam-8bit");
  const auto host = job_of(file + "deepspeed: zero3_bf16_cpuoffload_all.json\n");
  CHECK(host.scenario.find("training")->find("optimizer")->text == "adam");
  CHECK(has_line_with(host.left_out, "taken as adam, which runs there"));
}

TEST_CASE("a length that no setting limits is assumed with a cluster; kinds of LoRA are LoRA") {
  const ImportedJob job =
      import_trainer("swift sft --model a/b --tuner_type adalora\n", "x.sh", JobFormat::ms_swift);
  const auto missing = std::ranges::find(job.missing, "training.sequence", &MissingKey::key);
  REQUIRE(missing != job.missing.end());
  CHECK(missing->otherwise == "2048");
  CHECK(job.left_out.front().ends_with("priced as lora"));
}

TEST_CASE("DeepSpeed's file or stage is DeepSpeed's stack, FSDP's settings PEFT's") {
  const std::string file =
      "model_name_or_path: Qwen/Qwen3-8B\nper_device_train_batch_size: 1\nmax_length: 2048\n";
  const auto stack = [&](const std::string& more) {
    return job_of(file + more).scenario.find("training")->find("stack")->text;
  };
  CHECK(stack("deepspeed: ds_z3_config.json\n") == "deepspeed");
  CHECK(stack("fsdp: full_shard\n") == "peft");
  CHECK(stack("") == "peft");
  CHECK(job_of("distributed_type: DEEPSPEED\nnum_processes: 8\ndeepspeed_config: {zero_stage: 3}\n")
            .scenario.find("training")
            ->find("stack")
            ->text == "deepspeed");
}

namespace {

// A script that lies in a folder of its own, among other files.
ImportedJob job_in(const program::Scratch& folder, const std::string& script) {
  const auto format = planner::trainer_format(script);
  REQUIRE(format);
  return planner::import_trainer(script, (folder.path() / "job.sh").string(), *format);
}

std::string missed(const ImportedJob& job, const char* key) {
  const auto found = std::ranges::find(job.missing, key, &planner::MissingKey::key);
  return found == job.missing.end() ? "" : found->remedy;
}

}  // namespace

TEST_CASE("accelerate's and DeepSpeed's files are read where they lie with the script") {
  const program::Scratch folder;
  folder.write("zero.yaml",
               "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\n"
               "deepspeed_config: {zero_stage: 3}\nnum_machines: 1\nnum_processes: 8\n");
  folder.write(
      "ds.json",
      "{\"zero_optimization\": {\"stage\": 3, \"offload_optimizer\": {\"device\": \"cpu\"}, "
      "\"offload_param\": {\"device\": \"cpu\"}}, \"train_batch_size\": \"auto\"}\n");
  folder.write("named.yaml",
               "distributed_type: DEEPSPEED\nnum_processes: 2\n"
               "deepspeed_config: {deepspeed_config_file: ds.json}\n");
  const std::string job = " --model_name_or_path Qwen/Qwen3-8B --max_length 2048 --bf16\n";
  const auto plan = [](const ImportedJob& from) { return *from.scenario.find("plan"); };
  const auto by_file = job_in(folder, "accelerate launch --config_file zero.yaml sft.py" + job);
  CHECK(plan(by_file).find("zero")->text == "3");
  CHECK(plan(by_file).find("dp")->text == "8");
  CHECK(by_file.scenario.find("training")->find("stack")->text == "deepspeed");
  CHECK(by_file.left_out.empty());
  // What the command has counts.
  const auto fewer =
      job_in(folder, "accelerate launch --config_file zero.yaml --num_processes 4 sft.py" + job);
  CHECK(plan(fewer).find("dp")->text == "4");
  for (const char* launch : {"deepspeed --num_gpus=2 sft.py --deepspeed ds.json",
                             "accelerate launch --config_file named.yaml sft.py"}) {
    const auto host = job_in(folder, launch + job);
    CHECK_MESSAGE(plan(host).find("zero")->text == "3", launch);
    CHECK_MESSAGE(plan(host).find("offload")->text == "parameters", launch);
    CHECK_MESSAGE(plan(host).find("dp")->text == "2", launch);
    CHECK_MESSAGE(host.left_out.empty(), launch);
  }
  // A file that is read and leaves the sharding open has the program's own.
  folder.write("two.yaml", "num_processes: 2\n");
  folder.write("plain.json", "{\"bf16\": {\"enabled\": true}}\n");
  folder.write("list.yaml", "[1, 2]\n");
  const auto plain = job_in(folder, "accelerate launch --config_file two.yaml sft.py" + job);
  CHECK(plan(plain).find("zero")->text == "0");
  CHECK(plan(plain).find("dp")->text == "2");
  CHECK(missed(plain, "plan.zero").empty());
  const auto unsharded =
      job_in(folder, "deepspeed --num_gpus 2 sft.py --deepspeed plain.json" + job);
  CHECK(plan(unsharded).find("zero")->text == "0");
  CHECK_THROWS_WITH_AS(job_in(folder, "accelerate launch --config_file list.yaml sft.py" + job),
                       doctest::Contains("is no map of settings"), costmodel::ConfigError);
  // What is not there, or lies outside of the folder, is asked for.
  const auto gone = job_in(folder, "accelerate launch --config_file gone.yaml sft.py" + job);
  CHECK(missed(gone, "plan.zero").find("stand in gone.yaml") != std::string::npos);
  CHECK(missed(gone, "plan.zero").find("--set plan.zero=N") != std::string::npos);
  const auto outside = job_in(folder, "deepspeed sft.py --deepspeed ../ds.json" + job);
  CHECK(missed(outside, "plan.zero").find("--set plan.zero=N") != std::string::npos);
}

TEST_CASE("accelerate's DeepSpeed without a stage is its default, ZeRO 2") {
  const auto job = job_of(
      "accelerate launch --use_deepspeed --num_processes 2 sft.py --model_name_or_path a/b\n");
  CHECK(job.scenario.find("plan")->find("zero")->text == "2");
  CHECK(job.left_out.empty());
}

TEST_CASE("TRL: PEFT's usual targets; what a script is called after is no supervised training") {
  const std::string job =
      " --model_name_or_path Qwen/Qwen3-8B --max_length 2048 --per_device_train_batch_size 2\n";
  const auto sft = job_of("accelerate launch trl/scripts/sft.py --use_peft" + job);
  CHECK(tuning_of(sft).find("targets")->items.size() == 2);
  CHECK(has_line_with(sft.notes, "PEFT's usual"));
  CHECK(sft.left_out.empty());
  // Two sequences are a pair's.
  const auto micro = [](const ImportedJob& of) {
    return of.scenario.find("plan")->find("micro_batch")->text;
  };
  CHECK(micro(sft) == "2");
  for (const char* launch : {"accelerate launch trl/scripts/dpo.py", "trl dpo"}) {
    const auto pairs = job_of(launch + job);
    CHECK_MESSAGE(micro(pairs) == "4", launch);
    CHECK_MESSAGE(has_line_with(pairs.left_out, "a reference model is not"), launch);
  }
  const auto yaml = job_of("model_name_or_path: a/b\nprecompute_ref_log_probs: true\n");
  CHECK(micro(yaml) == "16");
  CHECK(yaml.left_out.size() == 1);
  for (const char* loss : {"apo_zero", "[sigmoid, sft]"}) {
    const auto pairs = job_of(std::string("model_name_or_path: a/b\nbeta: 0.1\n") +
                              "per_device_train_batch_size: 1\nloss_type: " + loss + "\n");
    CHECK_MESSAGE(micro(pairs) == "2", loss);
    CHECK_MESSAGE(has_line_with(pairs.left_out, "a reference model is not"), loss);
    CHECK_MESSAGE(pairs.left_out.size() == 1, loss);
  }
  CHECK(micro(job_of("model_name_or_path: a/b\nper_device_train_batch_size: 1\n"
                     "loss_type: chunked_nll\n")) == "1");
  const auto sampled = job_of("accelerate launch grpo.py --num_generations 8" + job);
  CHECK(micro(sampled) == "2");
  CHECK(has_line_with(sampled.left_out, "sampling, which may take most of a step"));
}

namespace {

// "KEY=VALUE" of these keys of a part, "-" for one that is not there.
std::string keys_of(const ImportedJob& job, const char* part, std::vector<const char*> keys) {
  std::string all;
  for (const char* key : keys) {
    const auto* value = job.scenario.find(part)->find(key);
    all += (all.empty() ? "" : " ") + (value == nullptr ? "-" : value->text);
  }
  return all;
}

}  // namespace

TEST_CASE("TRL checkpoints of itself and takes 1,024 tokens; the Trainer does neither") {
  const std::string model = " --model_name_or_path a/b --per_device_train_batch_size 2";
  for (const char* launch : {"trl sft", "python trl/scripts/dpo.py", "accelerate launch run_sft.py",
                             "torchrun train.py --use_peft"}) {
    const auto job = job_of(launch + model + "\n");
    CHECK_MESSAGE(keys_of(job, "plan", {"recompute"}) == "full", launch);
    CHECK_MESSAGE(keys_of(job, "training", {"sequence"}) == "1024", launch);
  }
  const auto off = job_of("trl sft" + model + " --gradient_checkpointing False\n");
  CHECK(keys_of(off, "plan", {"recompute"}) == "none");
  CHECK(keys_of(job_of("model_name_or_path: a/b\nmax_length: 512\n"), "plan", {"recompute"}) ==
        "full");
  const auto plain = job_of("torchrun run_clm.py --block_size 512" + model + "\n");
  CHECK(keys_of(plain, "plan", {"recompute"}) == "none");
  const auto glue = job_of("torchrun run_glue_no_trainer.py --max_length 128" + model + "\n");
  CHECK(keys_of(glue, "plan", {"recompute"}) == "none");
  // Prompts have no limit of their own.
  const auto sampled = job_of("trl grpo" + model + "\n");
  CHECK(keys_of(sampled, "plan", {"recompute"}) == "full");
  CHECK(keys_of(sampled, "training", {"sequence"}) == "REPLACE");
  const auto limited =
      job_of("trl grpo" + model + " --max_prompt_length 1024 --max_completion_length 7168\n");
  CHECK(keys_of(limited, "training", {"sequence"}) == "8192");
}

TEST_CASE("LLaMA-Factory's samples are cut by cutoff_len; it checkpoints unless it is disabled") {
  const std::string file =
      "model_name_or_path: a/b\nstage: sft\nfinetuning_type: full\ncutoff_len: 4096\n";
  const auto job = job_of(file + "max_length: 512\ngradient_checkpointing: false\n");
  CHECK(keys_of(job, "training", {"sequence"}) == "4096");
  CHECK(keys_of(job, "plan", {"recompute"}) == "full");
  CHECK(has_line_with(job.notes, "disable_gradient_checkpointing"));
  CHECK(keys_of(job_of(file + "disable_gradient_checkpointing: true\n"), "plan", {"recompute"}) ==
        "none");
  CHECK(keys_of(job_of("llamafactory-cli train --stage sft --finetuning_type full --cutoff_len 64 "
                       "--max_length 8\n"),
                "training", {"sequence"}) == "64");
}

TEST_CASE("a map of DeepSpeed in place of its file") {
  for (const char* file : {"model_name_or_path: a/b\nstage: sft\nfinetuning_type: full\n",
                           "base_model: a/b\nmicro_batch_size: 1\n"}) {
    const auto job = job_of(file + std::string("deepspeed:\n  bf16: {enabled: true}\n"
                                               "  zero_optimization:\n    stage: 3\n"
                                               "    offload_optimizer: {device: cpu}\n"));
    CHECK(keys_of(job, "plan", {"zero", "offload"}) == "3 optimizer");
    CHECK(keys_of(job, "training", {"stack"}) == "deepspeed");
    CHECK(job.left_out.empty());
    const auto none = job_of(file + std::string("deepspeed:\n  bf16: {enabled: true}\n"));
    CHECK(keys_of(none, "plan", {"zero"}) == "0");
  }
}

TEST_CASE("one process where nothing starts more: ms-swift's, and accelerate's NO") {
  const std::string run = "swift sft --model a/b --gradient_accumulation_steps 2";
  const auto spread = job_of("CUDA_VISIBLE_DEVICES=0,1,2,3 \\\n" + run + "\n");
  CHECK(keys_of(spread, "plan", {"dp"}) == "1");
  CHECK(keys_of(spread, "training", {"global_batch"}) == "2");
  CHECK(has_line_with(spread.left_out, "4 visible devices"));
  const auto launched = job_of(
      "CUDA_VISIBLE_DEVICES=0,1 accelerate launch swift/cli/sft.py --model a/b --max_length 512\n");
  CHECK(keys_of(launched, "plan", {"dp"}) == "2");
  const auto each = job_of("NPROC_PER_NODE=4 CUDA_VISIBLE_DEVICES=0,1,2,3 " + run + "\n");
  CHECK(keys_of(each, "plan", {"dp"}) == "4");
  CHECK(each.left_out.empty());
  // Key-value heads that are a multiple of the ranks are exchanged.
  const auto context = job_of("NPROC_PER_NODE=8 " + run + " --sequence_parallel_size 8\n");
  CHECK(keys_of(context, "plan", {"cp", "cp_comm"}) == "8 a2a");
  const auto no = job_of("distributed_type: \"NO\"\nmixed_precision: bf16\n");
  CHECK(keys_of(no, "cluster", {"devices"}) == "1");
}

TEST_CASE("shards within each of two nodes, and DeepSpeed-Chat's words") {
  const auto hybrid = job_of(
      "torchrun --nnodes 2 --nproc_per_node 8 run_clm.py --model_name_or_path a/b --block_size 512 "
      "--fsdp \"hybrid_shard auto_wrap\"\n");
  CHECK(keys_of(hybrid, "plan", {"dp", "dp_replicate"}) == "16 2");
  const auto chat = job_of(
      "deepspeed --num_gpus 8 main.py --model_name_or_path a/b --data_split 2,4,4 --max_seq_len "
      "512 --zero_stage 3 --deepspeed --offload --lora_dim 128 --lora_module_name layers.\n");
  CHECK(keys_of(chat, "training", {"sequence", "precision"}) == "512 fp16");
  CHECK(keys_of(chat, "plan", {"zero", "offload"}) == "3 parameters");
  CHECK(tuning_of(chat).find("rank")->text == "128");
  CHECK(tuning_of(chat).find("targets")->text == "all-linear");
  CHECK(chat.left_out.empty());
  const auto none =
      job_of("deepspeed main.py --model_name_or_path a/b --data_split 1 --lora_dim 0");
  CHECK(tuning_of(none).find("method")->text == "full");
  const auto wide =
      job_of("deepspeed main.py --model_name_or_path a/b --data_split 1 --dtype bf16");
  CHECK(keys_of(wide, "training", {"precision"}) == "bf16");
}

TEST_CASE("a setting that is left out is listed once; the loss of fused kernels is named") {
  const auto job = job_of(
      "model_name_or_path: a/b\nfinetuning_type: full\npure_bf16: true\n"
      "enable_liger_kernel: true\n");
  REQUIRE(job.left_out.size() == 2);
  CHECK(has_line_with(job.left_out, "pure_bf16 = true: taken as bf16"));
  CHECK(has_line_with(job.left_out, "--set training.loss=flash"));
}

TEST_CASE("what a command takes from outside leaves the settings before it as they are") {
  const std::string begin =
      "torchrun --nproc_per_node=8 run_clm.py --model_name_or_path a/b --block_size 1024 ";
  const auto job = job_of(begin + "--gradient_checkpointing True $EXTRA\n");
  CHECK(job.scenario.find("plan")->find("recompute")->text == "full");
  CHECK(job.left_out == std::vector<std::string>{"$EXTRA: has no value in the script"});
  CHECK_THROWS_WITH_AS(job_of(begin + "--gradient_checkpointing $GC\n"),
                       doctest::Contains("'gradient_checkpointing = $GC' is no value"),
                       costmodel::ConfigError);
}

TEST_CASE("the Trainer's arguments may be JSON") {
  const auto job = job_of(
      "{\"model_name_or_path\": \"Qwen/Qwen3-8B\", \"deepspeed\": \"ds_z2_config.json\",\n"
      " \"per_device_train_batch_size\": 2, \"max_length\": 2048}\n");
  CHECK(job.format == planner::JobFormat::trainer);
  CHECK(job.scenario.find("plan")->find("micro_batch")->text == "2");
  CHECK(job.scenario.find("plan")->find("zero")->text == "2");
}

TEST_CASE("adapters of a checkpoint that is quantised, as its name has it") {
  const auto tuned = [](const std::string& name, const char* key) {
    const auto job =
        job_of("model_name_or_path: a/" + name + "\nfinetuning_type: lora\ncutoff_len: 1024\n");
    const auto* value = job.scenario.find("training")->find("fine_tuning")->find(key);
    return (value == nullptr ? "" : value->text) + (job.left_out.empty() ? "" : " left out");
  };
  CHECK(tuned("Meta-Llama-3-8B-Instruct-AWQ", "method") == "qlora");
  CHECK(tuned("Meta-Llama-3-8B-Instruct-GPTQ", "method") == "qlora");
  CHECK(tuned("Qwen2-7B-Instruct-GPTQ-Int8", "base_precision") == "fp8");
  CHECK(tuned("Meta-Llama-3-8B-Instruct-AQLM-2Bit-1x16", "method") == "lora left out");
  CHECK(tuned("Meta-Llama-3-8B-Instruct", "method") == "lora");
}

TEST_CASE("axolotl: ranks of experts, an optimizer of 4 bits, a pattern of modules, fp8") {
  const std::string file = "base_model: a/b\nmicro_batch_size: 1\nsequence_len: 512\n";
  const auto experts = job_of(file + "expert_parallel_size: 2\ndp_shard_size: 2\n");
  const auto at = [](const ImportedJob& job, const char* part, const char* key) {
    const auto* value = job.scenario.find(part)->find(key);
    return value == nullptr ? "" : value->text;
  };
  CHECK(at(experts, "cluster", "devices") == "4");
  CHECK(at(experts, "plan", "ep") == "2");
  CHECK(at(experts, "plan", "dp") == "4");
  CHECK(at(experts, "training", "global_batch") == "4");
  const auto four = job_of(file + "optimizer: adamw_torch_4bit\n");
  CHECK(at(four, "training", "optimizer") == "adam-8bit");
  CHECK(has_line_with(four.left_out, "taken as adam-8bit, the nearest"));
  CHECK(at(job_of(file + "bf16: true\nfp8: true\n"), "training", "precision") == "fp8");
  const auto pattern =
      job_of(file + "adapter: lora\nlora_target_modules: '.*layers.[\\d]+.self_attn.(q|v)_proj'\n");
  const auto* targets = pattern.scenario.find("training")->find("fine_tuning")->find("targets");
  REQUIRE(targets->items.size() == 2);
  CHECK(targets->items[1].text == "v");
  CHECK(pattern.left_out.size() == 1);
  CHECK(has_line_with(pattern.left_out, "a regular expression, taken as q_proj, v_proj"));
}

}  // namespace import_trainer_test
