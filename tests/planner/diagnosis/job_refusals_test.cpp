// What cannot be is refused before causes are weighed.
#include "planner/diagnosis/job_refusals.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "planner/diagnosis/job_diagnosis.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace job_refusals_test {

using namespace planner;

namespace {

const costmodel::Scenario& scenario() {
  static const auto s = scenarios::read(
      "model: llama-2-7b\ncluster: {base: dgx-a100, devices: 8}\ntraining: {sequence: 4096, "
      "global_batch: 64, stack: megatron-core-2024}\nplan: {tp: 4, pp: 1, micro_batch: 4, "
      "sequence_parallel: true, zero: 1}\n");
  return s;
}

std::string lines(double seconds, int number = 6, const char* more = "") {
  std::string text;
  for (int n = 20; n < 20 + number; ++n) {
    text += fmt::format(
        " iteration {}/ 100 | elapsed time per iteration (ms): {:.1f} | global batch size: 64 "
        "|{}\n",
        n, 1e3 * seconds * (1 + 0.001 * (n % 3)), more);
  }
  return text;
}

std::string refused(const std::string& log) {
  static JobDiagnoser diagnoser(scenario(), resolve_plan(scenario()));
  const auto d = diagnoser.diagnose(parse_training_log(log, "a.log", iteration_size(scenario())));
  return d.refusals.empty() ? "" : d.refusals.front().name;
}

}  // namespace

TEST_CASE("rates above the peak, above all published runs, and faster than the interval") {
  CHECK(refused(lines(7.4)) == "");
  CHECK(refused(lines(20)) == "");
  CHECK(refused(lines(3)) == "above-peak");
  CHECK(refused(lines(5.2)) == "above-published");
  const Refusal first = [] {
    static JobDiagnoser diagnoser(scenario(), resolve_plan(scenario()));
    return diagnoser.diagnose(parse_training_log(lines(3), "a.log", iteration_size(scenario())))
        .refusals.front();
  }();
  CHECK(first.what.find("% of its peak of 312") != std::string::npos);
  CHECK(first.remedy.find("32 devices") != std::string::npos);
}

TEST_CASE("a log of another model, of other devices, of another batch that does not explain it") {
  CHECK(refused("  num_layers ............ 80\n" + lines(7.4)) == "other-job");
  CHECK(refused("  num_layers ............ 32\n" + lines(7.4)) == "");
  CHECK(refused("Number of trainable parameters = 70,553,706,496\n" + lines(7.4)) == "other-job");
  CHECK(refused("  world_size ............ 64\n" + lines(7.4)) == "other-job");
  CHECK(refused("  micro_batch_size ...... 1\n" + lines(7.6)) == "");
  CHECK(refused("  seq_length ............ 2048\n" + lines(30)) == "other-job");
  CHECK(refused("  seq_length ............ 2048\n" + lines(3.7)) == "");
}

TEST_CASE("FLOPs that the log counts are the model's, however it counts attention") {
  const auto rated = [](double tflops) {
    std::string text;
    for (int n = 20; n < 26; ++n) {
      text += fmt::format(
          " iteration {}/ 100 | elapsed time per iteration (ms): {} | throughput per GPU "
          "(TFLOP/s/GPU): {:.1f} |\n",
          n, 7400 + n, tflops + 0.1 * n);
    }
    return text;
  };
  CHECK(refused(rated(195)) == "");
  CHECK(refused(rated(60)) == "other-job");
}

TEST_CASE("one iteration shows nothing, a summary of many does") {
  CHECK(refused(lines(7.4, 1)) == "too-few-iterations");
  CHECK(refused("{'train_runtime': 7400, 'train_samples_per_second': 8.64, "
                "'train_steps_per_second': 0.135}\n") == "");
}

}  // namespace job_refusals_test
