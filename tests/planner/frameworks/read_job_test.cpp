// Files told apart by what they hold.
#include "planner/frameworks/read_job.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/planner/support/megatron_runs.hpp"

namespace read_job_test {

namespace {

// What format a file of this text is read as.
planner::ImportedJob job_of(const std::string& text) {
  const auto file =
      std::filesystem::temp_directory_path() / ("shardplan-read-job-" + std::to_string(::getpid()));
  std::ofstream(file) << text;
  planner::ImportedJob job = planner::read_job(file.string());
  std::filesystem::remove(file);
  return job;
}

}  // namespace

TEST_CASE("a script sources files of its own folder or below, and no others") {
  namespace fs = std::filesystem;
  const fs::path top =
      fs::temp_directory_path() / ("shardplan-sourced-" + std::to_string(::getpid()));
  fs::create_directories(top / "job/conf");
  std::ofstream(top / "job/conf/sizes.sh") << "SIZES=\"--num-layers 4 --hidden-size 64\"\n";
  std::ofstream(top / "outside.sh") << "SIZES=\"--num-layers 8 --hidden-size 64\"\n";
  fs::create_symlink(top / "outside.sh", top / "job/link.sh");
  const auto layers = [&](const std::string& name) {
    std::ofstream(top / "job/run.sh")
        << "SIZES=\"--num-layers 2 --hidden-size 64\"\nsource " << name
        << "\ntorchrun --nproc-per-node 8 pretrain_gpt.py $SIZES --micro-batch-size 1 "
           "--seq-length 64 --vocab-size 64\n";
    return planner::read_job((top / "job/run.sh").string())
        .scenario.find("model")
        ->find("layers")
        ->text;
  };
  CHECK(layers("$(dirname \"$0\")/conf/sizes.sh") == "4");
  CHECK(layers("of/another/folder/conf/sizes.sh") == "2");
  for (const std::string& other : {std::string("../outside.sh"), std::string("link.sh"),
                                   (top / "outside.sh").string(), std::string("missing.sh")})
    CHECK(layers(other) == "2");
  fs::remove_all(top);
}

TEST_CASE("a scenario, a script and a log") {
  const auto scenario = job_of("model: gpt3-175b\ncluster: selene\nplan: {tp: 8}\n");
  CHECK(scenario.format == planner::JobFormat::scenario);
  CHECK(scenario.scenario.find("plan")->find("tp")->text == "8");
  const auto json = job_of(R"({"model": {"layers": 2}, "training": {}, "plan": {"tp": 8}})");
  CHECK(json.format == planner::JobFormat::scenario);
  CHECK(json.scenario.find("plan")->find("tp")->text == "8");
  CHECK(job_of(megatron_runs::script).format == planner::JobFormat::megatron);
  CHECK(job_of(megatron_runs::log).missing.size() == 1);
  CHECK(job_of("config.parallelism.tensor_parallel_degree = 2\n").format ==
        planner::JobFormat::torchtitan);
  CHECK(job_of("{\"train_batch_size\": 8}").format == planner::JobFormat::deepspeed);
  CHECK_THROWS_WITH(job_of("hello\n"), doctest::Contains("is no description of a job"));
  CHECK_THROWS_WITH(job_of("other.sh"), doctest::Contains("the name other.sh, as a symbolic"));
}

TEST_CASE("YAML of programs that are not read, though it has a model") {
  CHECK_THROWS_WITH(
      job_of("model:\n  _component_: torchtune.models.llama3.llama3_8b\nbatch_size: 2\n"),
      doctest::Contains("looks like torchtune's YAML, which is not read"));
  CHECK_THROWS_WITH(job_of("model:\n  name: mpt_causal_lm\ntrain_loader:\n  name: text\n"),
                    doctest::Contains("looks like llm-foundry's YAML, which is not read"));
  CHECK_THROWS_WITH(job_of("step_scheduler:\n  local_batch_size: 4\nmodel:\n  _target_: "
                           "nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained\n"),
                    doctest::Contains("looks like NeMo Automodel's YAML, which is not read"));
}

TEST_CASE("flags in YAML, and in a file that only assigns; a flag or two are no job") {
  const auto yaml = job_of(
      "ENV_VARS:\n  A: 1\nMODEL_ARGS:\n  --num-layers: 12\n  --hidden-size: 512\n"
      "  --num-attention-heads: 8\n  --micro-batch-size: 4\n  --global-batch-size: 32\n"
      "  --seq-length: 1024\n  --max-position-embeddings: 1024\n"
      "  --tensor-model-parallel-size: 2\n  --bf16: true\n  --swiglu: false\n");
  CHECK(yaml.scenario.find("model")->find("layers")->text == "12");
  CHECK(yaml.scenario.find("model")->find("gated_mlp")->text == "false");
  CHECK(yaml.scenario.find("plan")->find("tp")->text == "2");
  CHECK(yaml.scenario.find("training")->find("precision")->text == "bf16");
  const auto file = job_of(
      "MODEL_ARGS=\"--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 "
      "\\\n  --max-position-embeddings 8192 --micro-batch-size 1 --bf16 --vocab-size 128256\"\n");
  CHECK(file.scenario.find("model")->find("hidden")->text == "4096");
  CHECK(file.scenario.find("training")->find("precision")->text == "bf16");
  const auto array = job_of(
      "GPT_MODEL_ARGS=(\n  --num-layers 32\n  --hidden-size 4096\n  --num-attention-heads 32\n"
      "  --seq-length 4096\n  --micro-batch-size 1\n  --vocab-size 32000\n)\n");
  CHECK(array.scenario.find("model")->find("layers")->text == "32");
  CHECK_THROWS_WITH(job_of("pretrain.py --num-layers 4\n"),
                    doctest::Contains("holds too little of a job: "));
  CHECK_THROWS_WITH(planner::read_job("/dev/null", "small"), doctest::Contains("no Python file"));
}

}  // namespace read_job_test
