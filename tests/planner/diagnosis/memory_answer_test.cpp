// An allocation that failed leads to changes with which the job fits.
#include "planner/diagnosis/memory_answer.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "costmodel/config/override.hpp"
#include "costmodel/estimate/plan_estimate.hpp"
#include "planner/logs/training_log.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace memory_answer_test {

using namespace planner;
using costmodel::Bytes;

namespace {

constexpr double gibi = 1024.0 * 1024 * 1024;

costmodel::Scenario scenario(const char* micro_batch) {
  return scenarios::read(std::string("model: gpt2-large\ncluster: {base: dgx-v100, devices: 1}\n"
                                     "training: {sequence: 1024, global_batch: 16, precision: "
                                     "fp16, stack: {base: megatron-core-2026, attention: "
                                     "unfused}}\nplan: {tp: 1, pp: 1, zero: 0, recompute: none, "
                                     "micro_batch: ") +
                         micro_batch + "}\n");
}

MemoryAnswer answer_of(const costmodel::Scenario& s, const OutOfMemory& failed) {
  const auto e = costmodel::estimate_of(s.model, s.cluster, s.training, resolve_plan(s));
  return answer_out_of_memory(s, e, failed);
}

}  // namespace

TEST_CASE("a job that is predicted not to fit: the first change is of the plan, and each fits") {
  const auto s = scenario("8");
  const auto a = answer_of(s, {.wanted = Bytes(272 * 1048576.0)});
  CHECK_FALSE(a.predicted_fits);
  REQUIRE_FALSE(a.changes.empty());
  CHECK(a.changes.front().settings == std::vector<std::string>{"plan.micro_batch=2"});
  for (const Remedy& change : a.changes) CHECK(change.best.fits());
}

TEST_CASE("a job that is predicted to fit: the changes leave room for what the prediction lacks") {
  const auto s = scenario("2");
  const auto a = answer_of(s, {.in_use = Bytes(31.5 * gibi), .rank = 0});
  CHECK(a.predicted_fits);
  CHECK(a.low_by > 1);
  CHECK(a.stage == 0);
  REQUIRE_FALSE(a.changes.empty());
  for (const Remedy& change : a.changes) {
    CHECK(change.best.fits());
    CHECK(change.best.peak * a.low_by <= s.cluster.device.memory);
  }
}

TEST_CASE("an allocation of the size of the logits is named") {
  const auto s = scenario("8");
  const double vocab = 50304;  // 50,257 padded to a multiple of 128
  const auto a = answer_of(s, {.wanted = Bytes(8 * 1024 * vocab * 4)});
  CHECK(a.tensor == "the logits of a micro-batch in 32 bits");
  CHECK(answer_of(s, {.wanted = Bytes(33e6)}).tensor == "");
}

namespace {

// Jobs of all kinds that ran out of memory, some of which are predicted to fit.
constexpr std::array jobs{
    "model: llama-3-70b\ncluster: {base: dgx-h100, devices: 128}\ntraining: {sequence: 8192, "
    "global_batch: 128, stack: megatron-core-2024}\nplan: {tp: 8, pp: 2, micro_batch: 1, "
    "sequence_parallel: false, recompute: none, zero: 1}\n",
    "model: qwen3-30b-a3b\ncluster: {base: hgx-h800, devices: 16}\ntraining: {sequence: 8192, "
    "global_batch: 128, stack: megatron-core-2025}\nplan: {tp: 1, pp: 2, ep: 8, micro_batch: 2, "
    "recompute: none, zero: 1}\n",
    "model: deepseek-v2-lite\ncluster: {base: dgx-h100, devices: 8}\ntraining: {sequence: 4096, "
    "global_batch: 32, stack: torchtitan}\nplan: {tp: 1, pp: 1, ep: 8, micro_batch: 4, recompute: "
    "selective, zero: 3}\n",
    "model: llama-2-70b\ncluster: {base: pcie-8x-rtx-4090, devices: 2}\ntraining: {sequence: 512, "
    "global_batch: 8, stack: peft, optimizer: adam-8bit, fine_tuning: {method: qlora, rank: 32, "
    "alpha: 16, targets: all-linear}}\nplan: {tp: 1, pp: 1, micro_batch: 1, recompute: full, zero: "
    "3}\n",
    "model: qwen2.5-32b\ncluster: {base: dgx-h100, devices: 8}\ntraining: {sequence: 4096, "
    "global_batch: 8, stack: peft}\nplan: {tp: 1, pp: 1, micro_batch: 1, recompute: full, zero: "
    "3}\n",
    "model: llama-2-7b\ncluster: {base: dgx-a100, devices: 8}\ntraining: {sequence: 4096, "
    "global_batch: 64, stack: megatron-core-2024}\nplan: {tp: 2, pp: 1, micro_batch: 2, "
    "sequence_parallel: true, zero: 1}\n",
    "model: pythia-6.9b\ncluster: {base: dgx-a100, devices: 8}\ntraining: {global_batch: 64, "
    "sequence: 4096, stack: gpt-neox}\nplan: {dp: 8, zero: 1, micro_batch: 8, recompute: full}\n"};

// Of five eras and makers.
constexpr std::array messages{
    "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.16 GiB. GPU 3 has a "
    "total capacity of {0} GiB of which 219.06 MiB is free. Including non-PyTorch memory, this "
    "process has {0} GiB memory in use.\n",
    "RuntimeError: CUDA out of memory. Tried to allocate 272.00 MiB (GPU 0; {0} GiB total "
    "capacity; {0} GiB already allocated; 3.69 MiB free; {0} GiB reserved in total by PyTorch)\n",
    "RuntimeError: NPU out of memory. Tried to allocate 594.00 MiB (NPU 5; {0} GiB total capacity; "
    "{0} GiB already allocated; 220.73 MiB free; {0} GiB reserved in total by PyTorch)\n",
    "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB. GPU 2 has a total "
    "capacity of {0} GiB of which 1.10 GiB is free.\n",
    "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 "
    "bytes.\n"};

}  // namespace

TEST_CASE("every log of an allocation that failed ends in a change that is evaluated as fitting") {
  for (const std::string job : jobs) {
    const auto s = scenarios::read(job);
    const double capacity = s.cluster.device.memory.value / gibi;
    for (const char* message : messages) {
      const std::string text = fmt::format(fmt::runtime(message), fmt::format("{:.2f}", capacity));
      CAPTURE(job + text);
      const auto log = parse_training_log(text, "a.log", {1, 1});
      REQUIRE(log.out_of_memory);
      const auto a = answer_of(s, *log.out_of_memory);
      REQUIRE_FALSE(a.changes.empty());
      costmodel::Value root = costmodel::parse_yaml(job, "test.yaml");
      for (const std::string& setting : a.changes.front().settings)
        costmodel::assign_path(root, setting, {});
      const auto changed = costmodel::read_scenario(root, "test", fixtures::configs());
      const auto e = costmodel::estimate_of(changed.model, changed.cluster, changed.training,
                                            resolve_plan(changed));
      CHECK(e.fits());
    }
  }
}

}  // namespace memory_answer_test
