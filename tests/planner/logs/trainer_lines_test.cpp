// Progress bars, dictionaries and records of trainers.
#include "planner/logs/trainer_lines.hpp"

#include <doctest/doctest.h>

#include <string>

#include "planner/logs/training_log.hpp"

namespace trainer_lines_test {

using namespace planner;

namespace {

constexpr double gibi = 1024.0 * 1024 * 1024;

TrainingLog parsed(const std::string& text) {
  return parse_training_log(text, "a.log", {80, 1000});
}

}  // namespace

TEST_CASE("Hugging Face's Trainer: bars, sizes and the summary") {
  const auto log = parsed(
      "Loading checkpoint shards: 100%|##########| 2/2 [00:10<00:00,  9.00s/it]\n"
      "  Instantaneous batch size per device = 10\n"
      "  Total train batch size (w. parallel, distributed & accumulation) = 80\n"
      "  1%|          | 2/203 [00:10<16:45,  5.00s/it]\r  1%|     | 3/203 [00:15<16:40,  "
      "5.10s/it]\r"
      "  2%|          | 4/203 [00:20<16:35,  5.00s/it]\n{'loss': 1.1, 'epoch': 0.9}\n"
      "  2%|          | 5/203 [00:20<16:35,  5.00s/it]\n"
      "{'train_runtime': 1015.0, 'train_samples_per_second': 16.0, 'train_steps_per_second': "
      "0.2}\n");
  CHECK(log.framework == "Hugging Face");
  CHECK(log.iterations.size() == 4);
  CHECK(log.pace.median.value == doctest::Approx(5));
  CHECK(*log.stated("training.global_batch") == "80");
  CHECK(*log.stated("plan.micro_batch") == "10");
  CHECK(log.averaged == 0);
}

TEST_CASE("a summary stands where no lines do, with the batch of its rates") {
  const auto log = parsed(
      "{'train_runtime': 18671.2, 'train_samples_per_second': 1.285, 'train_steps_per_second': "
      "0.0201, 'train_loss': 1.07, 'epoch': 1.0}\n");
  CHECK(log.pace.median.value == doctest::Approx(1 / 0.0201));
  CHECK(log.averaged == 375);
  CHECK(*log.stated("training.global_batch") == "64");
}

TEST_CASE("iterations a second; ms-swift's speed and memory") {
  const auto log = parsed(" 12%|#  | 12/100 [00:10<01:15,  2.50it/s]\n");
  CHECK(log.pace.median.value == doctest::Approx(0.4));
  const auto swift = parsed(
      "{'loss': 1.0, 'memory(GiB)': 44.5, 'train_speed(iter/s)': 0.25, 'global_step/max_steps': "
      "'10/200'}\n");
  CHECK(swift.pace.median.value == doctest::Approx(4));
  CHECK(swift.reserved.value == doctest::Approx(44.5 * gibi));
  CHECK(swift.iterations[0].number == 10);
}

TEST_CASE("NeMo 1 counts by its global step; verl's update; OLMo's records") {
  const auto nemo = parsed(
      "Epoch 0:   1%|   | 795/77225 [9:07:30<877:00:00, 41.30s/it, loss=3.1, v_num=, "
      "global_step=794.0, consumed_samples=1.63e+6]\n");
  CHECK(nemo.framework == "NeMo");
  CHECK(nemo.iterations[0].number == 794);
  CHECK(nemo.pace.median.value == doctest::Approx(41.3));
  const auto verl = parsed(
      "step:3 - actor/lr:1e-06 - timing_s/gen:80.0 - timing_s/update_actor:41.2 - "
      "timing_s/step:150.1 - perf/max_memory_allocated_gb:61.0\n");
  CHECK(verl.pace.median.value == doctest::Approx(41.2));
  CHECK(verl.allocated.value == doctest::Approx(61 * gibi));
  const auto olmo = parsed(
      "[step=10/739328]\n    throughput/device/batches_per_second=0.125\n[step=11/739328]\n"
      "    throughput/device/BPS=0.125\n    throughput/device/data loading (s)=0.5\n");
  CHECK(olmo.framework == "OLMo");
  CHECK(olmo.iterations.size() == 2);
  CHECK(olmo.pace.median.value == doctest::Approx(8));
  REQUIRE(olmo.part(JobPart::data) != nullptr);
  CHECK(olmo.part(JobPart::data)->most.value == doctest::Approx(0.5));
}

TEST_CASE("bars of other things, and what only looks like one") {
  LogDraft draft;
  for (const char* line :
       {"Map: 10%|# | 10/100 [00:01<00:09, 9.0it/s]", "Evaluating: 1/2 [00:01<00:01, 1.0s/it]",
        "[00:10<16:45, 5.00s/it]", " 1/2 [00:10, 5.00s/it]", "a < b [c] s/it", "{}", "<", "[", ""})
    CHECK_FALSE(read_trainer_line(line, draft));
  CHECK(draft.iterations.empty());
}

}  // namespace trainer_lines_test
