// Lines as frameworks print them; where each was seen stands in log_formats.hpp.
#include "planner/logs/log_formats.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>

namespace log_formats_test {

using namespace planner;

namespace {

LogDraft read(std::initializer_list<const char*> lines) {
  LogDraft draft;
  for (const char* line : lines) read_log_line(line, draft);
  return draft;
}

std::map<std::string, std::string> said(const LogDraft& draft) {
  std::map<std::string, std::string> all;
  for (const LoggedSetting& one : draft.log.settings) all[one.key] = one.value;
  return all;
}

constexpr double mebi = 1048576, gibi = 1024 * mebi;

}  // namespace

TEST_CASE("Megatron-LM: an iteration, memory, sizes") {
  const auto draft = read(
      {"using world size: 64, data-parallel size: 8, context-parallel size: 1, "
       "tensor-model-parallel size: 4, pipeline-model-parallel size: 2 ",
       " [2024-04-06 03:02:12] iteration       71/     100 | consumed samples:         9088 | "
       "elapsed "
       "time per iteration (ms): 5361.6 | throughput per GPU (TFLOP/s/GPU): 243.6 | learning rate: "
       "1.420000E-05 | global batch size:   128 | lm loss: 1.818812E+00 |",
       "[Rank 0] (after 71 iterations) memory (MB) | allocated: 6245.033203125 | max allocated: "
       "6245.5 | reserved: 6554.0 | max reserved: 6555.0",
       "[Rank 4] (after 71 iterations) memory (MB) | allocated: 1 | max allocated: 6000.0 | "
       "reserved: "
       "2 | max reserved: 6600.0"});
  REQUIRE(draft.iterations.size() == 1);
  CHECK(draft.iterations[0].number == 71);
  CHECK(*draft.iterations[0].seconds == doctest::Approx(5.3616));
  CHECK(draft.log.framework == "Megatron-LM");
  CHECK(draft.log.allocated.value == doctest::Approx(6245.5 * mebi));
  CHECK(draft.log.reserved.value == doctest::Approx(6600 * mebi));
  REQUIRE(draft.log.ranks.size() == 2);
  CHECK(draft.log.ranks[1].rank == 4);
  CHECK(draft.log.ranks[1].allocated.value == doctest::Approx(6000 * mebi));
  CHECK(said(draft) == std::map<std::string, std::string>{{"cluster.devices", "64"},
                                                          {"plan.cp", "1"},
                                                          {"plan.pp", "2"},
                                                          {"plan.tp", "4"},
                                                          {"training.global_batch", "128"}});
}

TEST_CASE("Megatron-LM: timers of all ranks and of one, old and new") {
  const auto draft =
      read({"(min, max) time across ranks (ms):",
            "    forward-backward ...............................: (5164.84, 5177.15)",
            "    forward-compute ................................: (2584.92, 2735.66)",
            "    batch-generator ................................: (408.98, 817.78)",
            "    model-and-optimizer-setup ......................: (39957.93, 39960.27)",
            "max time across ranks (ms):",
            "    all-grads-sync .................................: 193.63",
            "time (ms) | forward-compute: 58.16 | backward-compute: 42.66 | "
            "backward-params-all-reduce: 21.43 | optimizer: 57.50 | batch-generator: 5.24"});
  const auto has = [&](JobPart part, double least, double most) {
    for (const PartLine& line : draft.parts) {
      if (line.part == part && line.least == doctest::Approx(least) &&
          line.most == doctest::Approx(most))
        return true;
    }
    return false;
  };
  CHECK(draft.parts.size() == 9);
  CHECK(has(JobPart::forward_backward, 5.16484, 5.17715));
  CHECK(has(JobPart::forward, 2.58492, 2.73566));
  CHECK(has(JobPart::data, 0.40898, 0.81778));
  CHECK(has(JobPart::gradient_sync, 0.19363, 0.19363));
  CHECK(has(JobPart::backward, 0.04266, 0.04266));
  CHECK(has(JobPart::optimizer, 0.0575, 0.0575));
  CHECK(has(JobPart::data, 0.00524, 0.00524));
}

TEST_CASE("Megatron-LM's table of arguments, in the scenario's words") {
  const auto words = said(read({"------------------------ arguments ------------------------",
                                "  bf16 ............................................ True",
                                "  fp8 ............................................. None",
                                "  micro_batch_size ................................ 2",
                                "  optimizer ....................................... adam",
                                "  overlap_grad_reduce ............................. False",
                                "  recompute_granularity ........................... full",
                                "  tensor_model_parallel_size ...................... 4",
                                "  virtual_pipeline_model_parallel_size ............ None"}));
  CHECK(words ==
        std::map<std::string, std::string>{{"plan.micro_batch", "2"},
                                           {"plan.recompute", "full"},
                                           {"plan.tp", "4"},
                                           {"training.overlap.overlap_grad_reduce", "false"},
                                           {"training.precision", "bf16"}});
  CHECK(said(read({"  bf16 .... True", "  fp8 .... hybrid"}))["training.precision"] == "fp8");
}

TEST_CASE("Megatron-Bridge and NeMo") {
  const auto bridge =
      read({" [2025-10-02 22:52:07] iteration       10/      50 | consumed samples: "
            "5120 | elapsed time per iteration (ms): 13212.7 | global batch size:   "
            "512 |",
            "Step Time : 14.26s GPU utilization: 58.2TFLOP/s/GPU"});
  CHECK(bridge.log.framework == "Megatron-Bridge");
  CHECK(bridge.iterations.size() == 1);
  const auto nemo = read(
      {"Training epoch 0, iteration 120/149 | lr: 3e-05 | consumed_samples: 121 | "
       "global_batch_size: 1 | global_step: 120 | reduced_train_loss: 1.233 | train_step_timing in "
       "s: "
       "0.03146 | val_loss: 4.106",
       "Epoch 0: :   3%|x         | 9000/301500 [1:42:42<55:37:46, v_num=0-56, global_step=9001, "
       "train_step_timing in s=0.615, val_loss=7.040]"});
  CHECK(nemo.log.framework == "NeMo");
  REQUIRE(nemo.iterations.size() == 2);
  CHECK(nemo.iterations[0].number == 120);
  CHECK(*nemo.iterations[0].seconds == 0.03146);
  CHECK(nemo.iterations[1].number == 9001);
  CHECK(*nemo.iterations[1].seconds == 0.615);
}

TEST_CASE("torchtitan") {
  const auto draft =
      read({"[rank0]:[titan] 2025-06-26 18:12:46,592 - root - INFO - Building 3-D device mesh with "
            "['pp', "
            "'dp_shard', 'tp'], [2, 8, 4]",
            "[rank0]:[titan] 2025-06-26 18:12:47,592 - root - INFO - Applied selective activation "
            "checkpointing to the model",
            "[rank0]:[titan] 2025-06-26 18:12:48,000 - root - INFO - Training starts at step 1, "
            "with local "
            "batch size 2, global batch size 16, sequence length 8192, total steps 100",
            "[titan] 2026-02-24 19:46:17,508 - root - INFO - step:  4  loss:  7.62585  grad_norm: "
            "26.6250  "
            "memory: 66.91GiB(37.51%)  tps: 10,050  tflops: 314.71  mfu: 13.99%"});
  REQUIRE(draft.iterations.size() == 1);
  CHECK(draft.iterations[0].number == 4);
  CHECK(draft.iterations[0].stamp.has_value());
  CHECK(draft.iterations[0].tokens_per_s_per_device == 10050);
  CHECK(draft.log.reserved.value == doctest::Approx(66.91 * gibi));
  CHECK(said(draft) == std::map<std::string, std::string>{{"plan.dp", "8"},
                                                          {"plan.micro_batch", "2"},
                                                          {"plan.pp", "2"},
                                                          {"plan.recompute", "selective"},
                                                          {"plan.tp", "4"},
                                                          {"training.global_batch", "16"},
                                                          {"training.sequence", "8192"}});
}

TEST_CASE("DeepSpeed, of today and before") {
  const auto draft = read(
      {"[2023-07-25 21:03:17,269] [INFO] [timer.py:215:stop] epoch=0/micro_step=34/global_step=34, "
       "RunningAvgSamplesPerSec=7.864669709950182, CurrSamplesPerSec=8.00912418308922, "
       "MemAllocated=59.65GB, MaxMemAllocated=63.31GB",
       "[2023-07-25 21:03:17,269] [INFO] [logging.py:96:log_dist] [Rank 0] rank=0 time (ms) | fwd: "
       "652.41 | bwd: 2164.52 | bwd_inner: 2001.89 | bwd_allreduce: 162.60 | step: 1172.13",
       "[2022-03-11 02:06:58,985] [INFO] [timer.py:189:stop] 0/40, "
       "SamplesPerSec=83.48609168106144, "
       "MemAllocated=0.26GB, MaxMemAllocated=9.02GB",
       "[2024-01-01 10:00:00,000] [INFO] [config.py:1003:print]   zero_optimization_stage ...... "
       "2"});
  CHECK(draft.log.framework == "DeepSpeed");
  REQUIRE(draft.iterations.size() == 2);
  CHECK(draft.iterations[0].number == 34);
  CHECK(draft.iterations[0].sequences_per_s == 8.00912418308922);
  CHECK(draft.iterations[1].number == 40);
  CHECK(draft.log.allocated.value == doctest::Approx(63.31 * gibi));
  REQUIRE(draft.parts.size() == 4);  // not bwd, which holds the reduction
  CHECK(draft.parts[1].most == doctest::Approx(2.00189));
  CHECK(said(draft)["plan.zero"] == "2");
}

TEST_CASE("nanotron and llm-foundry") {
  const auto nanotron =
      read({"10/17/2025 16:31:56 [INFO|DP=0|PP=0|TP=0]: iteration: 327281 / 378950 | "
            "consumed_tokens: 85.8G "
            "| elapsed_time_per_iteration_ms: 11.5K | tokens_per_sec: 22.8K | "
            "tokens_per_sec_per_gpu: 11.4K "
            "| global_batch_size: 64 | lm_loss: 2.38 | cuda_max_memory_reserved: 547M | hd_total: "
            "312G"});
  REQUIRE(nanotron.iterations.size() == 1);
  CHECK(nanotron.iterations[0].number == 327281);
  CHECK(*nanotron.iterations[0].seconds == doctest::Approx(11.5));
  CHECK(nanotron.log.reserved.value == 547e6);
  const auto foundry =
      read({"[batch=12/4800]:", "\t Train trainer/device_train_microbatch_size: 16",
            "\t Train throughput/batches_per_sec: 0.3258",
            "\t Train memory/peak_reserved_mem: 14.6740"});
  REQUIRE(foundry.iterations.size() == 1);
  CHECK(foundry.iterations[0].number == 12);
  CHECK(*foundry.iterations[0].seconds == doctest::Approx(1 / 0.3258));
  CHECK(foundry.log.framework == "llm-foundry");
  CHECK(said(foundry)["plan.micro_batch"] == "16");
}

TEST_CASE("other lines say nothing") {
  const auto draft =
      read({"", "done with setup ...", "loss: 1.5", "> finished creating GPT datasets ...",
            "WARNING: step is slow", "tps: 5"});
  CHECK(draft.iterations.empty());
  CHECK(draft.parts.empty());
  CHECK(draft.log.settings.empty());
  CHECK(known_log_lines().size() == 10);
}

}  // namespace log_formats_test
