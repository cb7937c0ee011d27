// An imported job: what is missing is named, given and gone.
#include "planner/exchange/imported_job.hpp"

#include <doctest/doctest.h>

#include "planner/frameworks/import_megatron.hpp"
#include "planner/frameworks/megatron_script.hpp"
#include "tests/planner/support/megatron_runs.hpp"

namespace imported_job_test {

TEST_CASE("a cluster and keys that are given are no longer missing") {
  auto job = planner::import_megatron(
      planner::read_megatron_script("--num-layers 4 --hidden-size 64", "x.sh"));
  const std::size_t missing = job.missing.size();
  planner::set_key(job, "training.sequence=128", {});
  CHECK(job.missing.size() == missing - 1);
  planner::set_cluster(job, "selene");
  CHECK(job.missing.size() == missing - 2);
  CHECK(job.scenario.find("cluster")->find("base")->text == "selene");
  CHECK(job.scenario.find("cluster")->find("devices")->text == "REPLACE");
}

TEST_CASE("requests in flight take the place of the rate of their arrival") {
  const auto job = [] {
    planner::ImportedJob imported;
    costmodel::Value serving;
    serving.set("arrival_rate", costmodel::scalar_value(std::string(planner::to_be_replaced)));
    imported.scenario.set("serving", serving);
    imported.missing = {{"serving.arrival_rate", "requests a second"}};
    return imported;
  };
  for (const char* load : {"serving.concurrency=16", "serving.requests=500"}) {
    auto given = job();
    planner::set_key(given, load, {});
    CHECK_MESSAGE(given.missing.empty(), load);
    CHECK_MESSAGE(given.scenario.find("serving")->find("arrival_rate") == nullptr, load);
  }
  auto rate = job();
  planner::set_key(rate, "serving.arrival_rate=2", {});
  planner::set_key(rate, "serving.requests=500", {});  // refused where it is read
  CHECK(rate.scenario.find("serving")->find("arrival_rate")->text == "2");
}

TEST_CASE("the YAML begins with what is missing and left out, a line each") {
  const auto text = to_yaml(
      planner::import_megatron(planner::read_megatron_script(megatron_runs::script, "x.sh")));
  CHECK(text.starts_with("# Missing: cluster.base: "));
  CHECK(text.find("\n# Left out: --window-size 128: it is no window of keys before a query, as "
                  "(127,0)\n") != std::string::npos);
  CHECK(text.find("\nmodel:\n") != std::string::npos);
}

TEST_CASE("full nodes that the plan divides where no number of devices is known, and one batch") {
  const auto of = [](const std::string& arguments) {
    auto job = planner::import_megatron(planner::read_megatron_script(
        "--num-layers 8 --hidden-size 64 --micro-batch-size 2 " + arguments, "x.sh"));
    planner::assume_missing(job, 8);
    return job;
  };
  const auto devices = [](const planner::ImportedJob& job) {
    return job.scenario.find("cluster")->find("devices")->text;
  };
  CHECK(devices(of("")) == "8");
  CHECK(devices(of("--tensor-model-parallel-size 4 --pipeline-model-parallel-size 4")) == "16");
  CHECK(devices(of("--tensor-model-parallel-size 2 --num-experts 64 "
                   "--expert-model-parallel-size 32 --expert-tensor-parallel-size 1")) == "32");
  const auto job = of("--tensor-model-parallel-size 2");
  CHECK(job.scenario.find("training")->find("global_batch")->text == "8");  // 4 replicas of 2
  const auto given = of("--global-batch-size 64");
  CHECK(given.scenario.find("training")->find("global_batch")->text == "64");
  CHECK(devices(of("--global-batch-size 8")) == "4");  // 8 replicas of 2 would want 16
}

TEST_CASE("a script that starts fewer processes than its plan needs, or names its nodes alone") {
  const auto devices = [](const std::string& before, const std::string& arguments) {
    auto job = planner::import_megatron(planner::read_megatron_script(
        before + " pretrain_gpt.py --num-layers 16 --hidden-size 64 " + arguments, "x.sh"));
    planner::assume_missing(job, 8);
    return job.scenario.find("cluster")->find("devices")->text;
  };
  const std::string plan = "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 16";
  CHECK(devices("torchrun --nproc_per_node 8 --nnodes 1", plan) == "128");
  CHECK(devices("torchrun --nproc_per_node 8 --nnodes 32", plan) == "256");
  CHECK(devices("#SBATCH --nodes=6\nsrun python", "--tensor-model-parallel-size 8") == "48");
  CHECK(devices("sbatch --nodes=3 job.sh\npython", "") == "24");
}

TEST_CASE("a vocabulary that nothing names is assumed with a note, and only with a cluster") {
  const auto vocab = [](const std::string& arguments) {
    auto job = planner::import_megatron(planner::read_megatron_script(
        "--num-layers 8 --hidden-size 64 --num-attention-heads 4 " + arguments, "x.sh"));
    CHECK(job.scenario.find("model")->find("vocab")->text == planner::to_be_replaced);
    planner::assume_missing(job, 8);
    CHECK(job.notes.back().starts_with("model.vocab"));
    return job.scenario.find("model")->find("vocab")->text;
  };
  CHECK(vocab("--vocab-file data/vocab.json") == "50257");
  CHECK(vocab("--vocab-file data/bert-vocab.txt") == "30522");
  CHECK(vocab("--tokenizer-type GPTSentencePieceTokenizer") == "32000");
}

}  // namespace imported_job_test
