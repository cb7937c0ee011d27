// `shardplan explain-job` as a user runs it.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/golden.hpp"
#include "tests/planner/support/planted_logs.hpp"
#include "tests/run_program.hpp"

namespace explain_job_command_test {

using fixtures::contains;
using program::Run;
using program::run;
using program::Scratch;

namespace {

const auto& slow_node = planted::cases().front();

}  // namespace

TEST_CASE("the report of a job with a slow node is frozen") {
  const Scratch scratch;
  const Run text = run(
      {"explain-job", planted::file_of(slow_node, ".yaml"), planted::file_of(slow_node, ".log")},
      scratch);
  CHECK(text.status == 0);
  CHECK(golden::compare("report_explain_job.txt", text.out) == "");
}

TEST_CASE("JSON names the cause") {
  const Scratch scratch;
  const Run json = run({"explain-job", planted::file_of(slow_node, ".yaml"),
                        planted::file_of(slow_node, ".log"), "--format", "json"},
                       scratch);
  CHECK(json.status == 0);
  CHECK(nlohmann::json::parse(json.out)["cause"] == "slow-node");
}

TEST_CASE("without a log: the prediction, and what would help") {
  const Scratch scratch;
  const Run text = run({"explain-job", planted::file_of(slow_node, ".yaml")}, scratch);
  CHECK(text.status == 0);
  CHECK(contains(text.out, "Predicted: "));
  CHECK(contains(text.out, "What would help most"));
}

TEST_CASE(
    "a Megatron-LM launch script and its log: the cluster is named, and the cause is the same") {
  const Scratch scratch;
  const Run script = run(
      {"export", planted::file_of(slow_node, ".yaml"), "--to", "megatron", "--out", "launch.sh"},
      scratch);
  REQUIRE(script.status == 0);
  const std::string log = planted::file_of(slow_node, ".log");
  const Run unnamed = run({"explain-job", "launch.sh", log}, scratch);
  CHECK(unnamed.status == 2);
  CHECK(contains(unnamed.err, "cluster"));
  const Run json =
      run({"explain-job", "launch.sh", log, "--cluster", "dgx-h100", "--format", "json"}, scratch);
  CHECK(json.status == 0);
  CHECK(nlohmann::json::parse(json.out)["cause"] == "slow-node");
}

TEST_CASE("a log in which nothing is measured: status 2, with what was looked for") {
  const Scratch scratch;
  scratch.write("empty.log", "done with setup ...\n");
  const Run text = run({"explain-job", planted::file_of(slow_node, ".yaml"), "empty.log"}, scratch);
  CHECK(text.status == 2);
  CHECK(text.out == "");
  CHECK(contains(text.err, "empty.log: nothing measured in this log"));
  CHECK(contains(text.err, "elapsed time per iteration (ms)"));
  CHECK(run({"explain-job", planted::file_of(slow_node, ".yaml"), "none.log"}, scratch).status ==
        2);
  CHECK(run({"explain-job"}, scratch).status == 2);
}

TEST_CASE("what cannot be ends with status 3, and JSON says why") {
  const Scratch scratch;
  scratch.write("fast.log",
                " iteration 20/ 99 | elapsed time per iteration (ms): 500.0 |\n"
                " iteration 21/ 99 | elapsed time per iteration (ms): 501.0 |\n"
                " iteration 22/ 99 | elapsed time per iteration (ms): 502.0 |\n"
                " iteration 23/ 99 | elapsed time per iteration (ms): 500.0 |\n");
  const Run json =
      run({"explain-job", planted::file_of(slow_node, ".yaml"), "fast.log", "--format", "json"},
          scratch);
  CHECK(json.status == 3);
  const auto j = nlohmann::json::parse(json.out);
  CHECK(j["cause"] == "above-peak");
  CHECK(j["causes"].empty());
  CHECK(j["refused"][0]["name"] == "above-peak");
  const Run text = run({"explain-job", planted::file_of(slow_node, ".yaml"), "fast.log"}, scratch);
  CHECK(text.status == 3);
  CHECK(text.out.starts_with("This cannot be judged: no NVIDIA H100"));
}

TEST_CASE("a log that ends out of memory is answered by changes that evaluate calls fitting") {
  const Scratch scratch;
  scratch.write("job.yaml",
                "model: gpt2-large\ncluster: {base: dgx-v100, devices: 1}\ntraining: {sequence: "
                "1024, global_batch: 16, precision: fp16, stack: {base: megatron-core-2026, "
                "attention: unfused}}\nplan: {tp: 1, pp: 1, micro_batch: 8, zero: 0, recompute: "
                "none}\n");
  scratch.write(
      "oom.log",
      "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 272.00 MiB. "
      "GPU 0 has a total capacity of 31.74 GiB of which 219.06 MiB is free.\n");
  const Run json = run({"explain-job", "job.yaml", "oom.log", "--format", "json"}, scratch);
  CHECK(json.status == 0);
  const auto j = nlohmann::json::parse(json.out);
  CHECK(j["cause"] == "out-of-memory");
  CHECK(j["out_of_memory"]["rank"] == 0);
  const std::string set = j["out_of_memory"]["changes"][0]["set"][0];
  CHECK(run({"evaluate", "job.yaml"}, scratch).status == 3);
  CHECK(run({"evaluate", "job.yaml", "--set", set}, scratch).status == 0);
  CHECK(run({"explain-job", "job.yaml", "oom.log"}, scratch).out.starts_with("Out of memory: 272"));
}

TEST_CASE("arguments and log in one file; what a script leaves out is the log's") {
  const Scratch scratch;
  std::string log =
      "------------------------ arguments ------------------------\n"
      "  bf16 ............................................ True\n"
      "  global_batch_size ............................... 64\n"
      "  hidden_size ..................................... 2048\n"
      "  max_position_embeddings ......................... 2048\n"
      "  micro_batch_size ................................ 1\n"
      "  num_attention_heads ............................. 16\n"
      "  num_layers ...................................... 24\n"
      "  padded_vocab_size ............................... 50304\n"
      "  seq_length ...................................... 2048\n"
      "  tensor_model_parallel_size ...................... 4\n"
      "  world_size ...................................... 8\n"
      "-------------------- end of arguments ---------------------\n";
  for (const char* n : {"20", "21", "22", "23"})
    log += std::string(" iteration ") + n + "/ 99 | elapsed time per iteration (ms): 1500.0 |\n";
  scratch.write("job.log", log);
  const Run one =
      run({"explain-job", "job.log", "--cluster", "dgx-a100", "--format", "json"}, scratch);
  CHECK(one.status == 0);
  CHECK(nlohmann::json::parse(one.out)["measured"]["iteration_s"] == 1.5);
  scratch.write("job.sh",
                "torchrun --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size 4 "
                "--num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 "
                "--max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 64 "
                "--bf16\n");
  const Run alone = run({"explain-job", "job.sh", "--cluster", "dgx-a100"}, scratch);
  CHECK(alone.status == 0);
  CHECK(contains(alone.err, "model.vocab 50257 is assumed, as that of GPT-2"));
  scratch.write("vocab.log",
                " > padded vocab (size: 50257) with 47 dummy tokens (new size: 50304)\n" +
                    log.substr(log.find(" iteration")));
  const Run two = run({"explain-job", "job.sh", "vocab.log", "--cluster", "dgx-a100"}, scratch);
  CHECK(two.status == 0);
  CHECK(contains(two.err, "model.vocab 50257 is the log's"));
}

}  // namespace explain_job_command_test
