// A scenario in words: `shardplan plan llama-3-70b --gpus 64xh100`.
#include "planner/commands/scenario_words.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "planner/commands/session.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/planner/support/cli_cases.hpp"
#include "tests/planner/support/in_process.hpp"
#include "tests/run_program.hpp"
#include "tests/sanitized.hpp"

namespace scenario_words_test {

using namespace planner;
using fixtures::config_error;
using fixtures::contains;
using program::run;
using program::Run;
using program::Scratch;
using program::words_of;

TEST_CASE("how many of which") {
  struct Case {
    const char* text;
    std::int64_t devices;
    const char* device;
  };
  for (const Case& one :
       {Case{"64xh100", 64, "h100"}, Case{"64xH100", 64, "H100"}, Case{"64 h100", 64, "h100"},
        Case{"8x4090", 8, "4090"}, Case{"2xrtx-4090", 2, "rtx-4090"}, Case{"64", 64, ""},
        Case{"2,048xh800", 2048, "h800"}, Case{"h100:64", 64, "h100"},
        Case{"8 x l40s", 8, "l40s"}}) {
    CAPTURE(one.text);
    const Gpus gpus = read_gpus(one.text);
    CHECK(gpus.devices == one.devices);
    CHECK(gpus.device == one.device);
  }
  for (const char* text : {"h100", "", "0xh100", "xh100", "h100:", "99999999xh100", "1.5xh100"})
    CHECK(contains(config_error([&] { read_gpus(text); }), "write how many of which"));
}

TEST_CASE("words set what --set sets") {
  Options options;
  options.gpus = "64xH100";
  options.batch = "512";
  options.sequence = "8k";
  options.precision = "BF16";
  options.framework = "nemo";
  const auto words = word_assignments(options, fixtures::configs());
  REQUIRE(words.size() == 6);
  CHECK(words[0] == "cluster={base: dgx-h100, devices: 64}");
  CHECK(contains(words[1], "dgx-h100 (for H100; --cluster NAME)"));
  CHECK(words[2] == "training.global_batch=512");
  CHECK(words[3] == "training.sequence=8k");
  CHECK(words[4] == "training.precision=bf16");
  CHECK(words[5] == "training.stack=nemo-2025");
}

TEST_CASE("a cluster and devices may both be named, if they agree") {
  Options options;
  options.gpus = "64xh100";
  options.cluster = "aws-p5";
  CHECK(word_assignments(options, fixtures::configs()).front() ==
        "cluster={base: aws-p5, devices: 64}");
  options.gpus = "64";
  CHECK(word_assignments(options, fixtures::configs()).front() ==
        "cluster={base: aws-p5, devices: 64}");
  options.gpus = "64xb200";
  CHECK(contains(config_error([&] { word_assignments(options, fixtures::configs()); }),
                 "cluster 'aws-p5' has devices"));
  options.cluster.clear();
  CHECK(word_assignments(options, fixtures::configs()).size() == 2);
}

TEST_CASE("one device needs no cluster that describes its links") {
  const std::string device = "h200-sxm-141gb-shardplan";
  Options options;
  options.gpus = "1x" + device;
  CHECK(word_assignments(options, fixtures::configs()).front() ==
        fmt::format("cluster={{device: {}, devices: 1}}", device));
  CHECK(contains(in_process::printed("evaluate llama-3.2-1b --gpus 1x" + device +
                                     " --batch 1 --sequence 2048"),
                 "on 1 x NVIDIA H200, by the kernels"));
  CHECK(contains(config_error([&] {
                   options.gpus = "2x" + device;
                   word_assignments(options, fixtures::configs());
                 }),
                 "tiers: [{name: pcie, devices: N, bandwidth_bytes_per_s: 25 GB/s"));
}

TEST_CASE("devices that are sold come in a cluster, whose name is theirs") {
  for (const char* const gpus :
       {"2xt4", "8xA6000", "8xh100-pcie", "8xL4", "8xl40", "8xL40S", "16xa10g", "8xA40", "4x3090",
        "2xrtx4090", "8xrtx6000ada", "8xrtx-pro-6000", "8xH100-NVL", "8xh100", "8xmi300x"}) {
    CAPTURE(gpus);
    Options options;
    options.gpus = gpus;
    CHECK(word_assignments(options, fixtures::configs()).front().starts_with("cluster={base: "));
  }
  Options options;
  options.gpus = "8xl40";
  CHECK(word_assignments(options, fixtures::configs()).front() ==
        "cluster={base: pcie-8x-l40, devices: 8}");
}

TEST_CASE("unknown words are answered with the nearest") {
  const auto fault = [](const std::string& command) { return in_process::printed(command); };
  CHECK(contains(fault("plan llama-3-8b --gpus 8xh1000"), "did you mean 'h100'?"));
  CHECK(contains(fault("plan llama-3-8b --gpus 8xrtx4080"), "did you mean 'rtx-4090'?"));
  CHECK(contains(fault("plan llama-3-8b --gpus 8xH101"), "did you mean 'h100'?"));
  CHECK(contains(fault("plan llama-3-8b --gpus 8xh200-sxm-141gb-shardplan"),
                 "no cluster of device 'h200-sxm-141gb-shardplan' is described"));
  CHECK(contains(fault("plan llama-3-8b --gpus 8xh100 --framework megatrn"),
                 "did you mean 'megatron'?"));
  CHECK(contains(fault("plan llama-3-8b --cluster dgx-h10"), "did you mean 'dgx-h100'?"));
  CHECK(contains(fault("plan llama-3-8b"),
                 "is a model, and no devices are named; add --gpus 8xh100"));
  CHECK(
      contains(fault("plan llama-3-8b --cluster dgx-h100"),
               "--cluster dgx-h100: is a kind of cluster, not one of so many devices; add --gpus"));
  CHECK(contains(fault("plan llama-3-8b --gpus 16"),
                 "is a model, and the kind of its 16 devices is not named; add --gpus 16xh100"));
  for (const std::string slip : {"1,6", "1,00,0", ",100", "16,"})
    CHECK(
        contains(fault("plan llama-3-8b --gpus " + slip + "xh100"), "is not 1 to 1000000 devices"));
  CHECK(contains(fault("plan deepseek --gpus 8xh100"), "may be several models"));
}

// What the report says is assumed, for a person and for a program.
TEST_CASE("what is assumed stands in the report, with the flag that changes it") {
  const std::string command = "evaluate llama-3-8b --gpus 8xh100 --set plan.tp=2";
  const std::string report = in_process::printed(command);
  const auto json = nlohmann::json::parse(in_process::printed(command + " --format json"));
  std::string notes;
  for (const auto& note : json["notes"]) notes += note.get<std::string>() + "\n";
  for (const char* line :
       {"sequence 4096 (none given; --sequence N)", "global_batch 128 (none given: 16 a device",
        "precision bf16 (none given; --precision P)", "--framework NAME)",
        "cluster: dgx-h100 (for h100; --cluster NAME)"}) {
    CAPTURE(line);
    CHECK(contains(report, line));
    CHECK(contains(notes, line));
  }
  CHECK_FALSE(contains(in_process::printed(command + " --sequence 8k"), "sequence 4096"));
}

TEST_CASE("a model stands wherever a scenario may") {
  const std::string words = " llama-3-8b --gpus 8xh100 --set plan.tp=2 --set plan.pp=1";
  for (const std::string command : {"explain", "simulate", "groups"}) {
    CAPTURE(command);
    CHECK(in_process::run("shardplan " + command + words).status == 0);
  }
  CHECK(contains(in_process::printed("sweep" + words + " --over micro_batch=1,2"), "micro_batch"));
  CHECK(contains(in_process::printed("compare" + words + " --with training.sequence=2048"),
                 "training.sequence"));
  CHECK(contains(in_process::printed("export" + words + " --to megatron"),
                 "--tensor-model-parallel-size 2"));
}

// Devices, and what else a framework's file leaves open, follow from --cluster alone.
TEST_CASE("a framework's job stands wherever a scenario may") {
  const Scratch scratch;
  scratch.write("train.sh",
                "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 2048 "
                "--num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 "
                "--micro-batch-size 4 --global-batch-size 256 --bf16 "
                "--tensor-model-parallel-size 2 --vocab-file gpt2-vocab.json\n");
  scratch.write("lora.yml",
                "base_model: Qwen/Qwen3-8B\nmodel_type: AutoModelForCausalLM\nadapter: lora\n"
                "sequence_len: 2048\nmicro_batch_size: 2\n");
  const Run script = run(words_of("evaluate train.sh --cluster dgx-h100"), scratch);
  CHECK(script.status == 0);
  CHECK(contains(script.out, "8 x NVIDIA H100"));
  CHECK(contains(script.out, "the vocabulary has 50257 tokens"));
  const Run yaml = run(words_of("evaluate lora.yml --cluster dgx-a100"), scratch);
  CHECK(yaml.status == 0);
  CHECK(contains(yaml.out, "8 devices are assumed"));
  CHECK(
      contains(run(words_of("evaluate train.sh --gpus 16xa100"), scratch).out, "16 x NVIDIA A100"));
  // What is open follows from the devices however they are named.
  scratch.write("swift.sh",
                "NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen3-8B "
                "--tensor_model_parallel_size 8\n");
  for (const char* named : {"--cluster dgx-h100", "--gpus 8xh100"}) {
    const Run open = run(words_of(std::string("evaluate swift.sh ") + named), scratch);
    CAPTURE(open.err);
    CHECK(contains(open.out, "training.sequence 2048 is assumed"));
  }
  CHECK(contains(run(words_of("evaluate lora.yml"), scratch).err, "does not say cluster.base"));
  scratch.write("tune.yaml", "model:\n  _component_: torchtune.models.llama3.llama3_8b\n");
  CHECK(contains(run(words_of("evaluate tune.yaml"), scratch).err, "looks like torchtune's YAML"));
}

TEST_CASE("words change a scenario's own values too") {
  const Scratch scratch;
  scratch.write("llama.yaml", cli::llama);
  const Run plain = run(words_of("evaluate llama.yaml --format json"), scratch);
  const Run changed = run(
      words_of("evaluate llama.yaml --format json --gpus 32xa100 --sequence 4k --set plan.dp=8"),
      scratch);
  CHECK(plain.status == 0);
  CHECK(changed.status == 0);
  CHECK(nlohmann::json::parse(plain.out)["plan"]["devices"] == 16);
  CHECK(nlohmann::json::parse(changed.out)["plan"]["devices"] == 32);
  CHECK(contains(run(words_of("evaluate llama.yaml --gpus 32 --set plan.dp=8"), scratch).out,
                 "32 x NVIDIA H100"));
}

TEST_CASE("a model may be a file, of Hugging Face or ours, and a dash is standard input") {
  const Scratch scratch;
  scratch.write("mine.yaml", "{base: llama-3-8b, layers: 16}\n");
  scratch.write("llama.yaml", cli::llama);
  CHECK(run(words_of("evaluate mine.yaml --gpus 8xh100 --set plan.tp=2"), scratch).status == 0);
  const Run named = run(words_of("evaluate llama.yaml"), scratch);
  const std::string piped = "cd " + scratch.path().string() + " && cat llama.yaml | " +
                            SHARDPLAN_EXECUTABLE + " evaluate - > piped.txt";
  REQUIRE(std::system(piped.c_str()) == 0);
  CHECK(scratch.read("piped.txt") == named.out);
}

TEST_CASE("the plan that is written has no lines of what was assumed, and loads") {
  const Scratch scratch;
  const Run plan =
      run(words_of(
              "plan meta-llama/Llama-3.1-8B --gpus 8xh100 --strategy grid --format yaml -o b.yaml"),
          scratch);
  CHECK(plan.status == 0);
  CHECK_FALSE(contains(scratch.read("b.yaml"), "assumed"));
  CHECK(run(words_of("evaluate b.yaml"), scratch).status == 0);
}

// Five newcomers with everyday words, one command each.
TEST_CASE("five newcomers have an answer in one command") {
  const std::string fewer =
      sanitized ? " --set search.max_vpp=1 --set search.max_micro_batch=1" : "";
  const Scratch scratch;
  for (const std::string command :
       {"plan llama-3-70b --gpus 64xh100", "plan mixtral-8x7b --gpus 16xa100",
        "plan deepseek-v3 --gpus 2048xh800", "plan qwen3-14b --gpus 8xl40s"}) {
    CAPTURE(command);
    const Run answer = run(words_of(command + fewer), scratch);
    CHECK(answer.status == 0);
    CHECK(answer.err == "");
    CHECK(contains(answer.out, "Assumed"));
  }
  const Run lacking = run(words_of("plan llama-2-7b --gpus 2x4090"), scratch);
  CHECK(lacking.status == no_answer);
  const std::string command =
      "shardplan plan llama-2-7b --gpus 2x4090 --set training.fine_tuning.method=";
  for (const std::string method : {"lora", "qlora"}) {
    CAPTURE(method);
    const auto at = lacking.out.find(command + method + " --set training.stack=peft");
    REQUIRE(at != std::string::npos);
    const std::string line = lacking.out.substr(at, lacking.out.find('\n', at) - at);
    CHECK(run(words_of(line.substr(line.find(' ') + 1)), scratch).status == 0);
  }
}

TEST_CASE("a program that serves is none that trains, and has its own keys") {
  const std::string answer = in_process::printed("plan llama-3-70b --gpus 4xH100 --framework vllm");
  CHECK(contains(answer, "'vllm' serves, and trains nothing; add --set workload=inference --set "));
  CHECK(contains(answer, "serving.stack=NAME, one of vllm-"));
}

TEST_CASE("what a model's import leaves out stands in its file, and each command prints it") {
  const Scratch scratch;
  scratch.write("config.json",
                R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
                    "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 512,
                    "weird_key": 5})");
  const Run done = run(words_of("import config.json --out model.yaml"), scratch);
  CHECK(done.status == 0);
  const std::string left_out = "weird_key of config.json is not understood here";
  CHECK(contains(done.err, "warning: " + left_out));
  CHECK(contains(scratch.read("model.yaml"), "# " + left_out));
  CHECK(run(words_of("evaluate model.yaml --gpus 8xh100"), scratch).status == 0);
  for (const char* words : {"plan config.json --gpus 8xh100", "evaluate config.json --gpus 8xh100",
                            "export config.json --gpus 8xh100 --to megatron",
                            "sweep config.json --gpus 8xh100 --over training.sequence=64,128",
                            "compare config.json --gpus 8xh100 --with plan.zero=1"}) {
    CAPTURE(words);
    const Run used = run(words_of(words), scratch);
    CHECK(used.status == 0);
    const std::size_t at = used.err.find("warning: " + left_out);
    CHECK(at != std::string::npos);
    CHECK(used.err.find(left_out, at + 20) == std::string::npos);  // once, however often it is read
  }
}

}  // namespace scenario_words_test
