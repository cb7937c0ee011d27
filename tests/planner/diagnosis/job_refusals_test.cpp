// What cannot be is refused before causes are weighed.
#include "planner/diagnosis/job_refusals.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "costmodel/estimate/plan_estimate.hpp"
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
  // Of what goes so far alone: not a batch of 1 for 64, nor more devices than there are.
  const auto remedy = [](double seconds) {
    JobDiagnoser diagnoser(scenario(), resolve_plan(scenario()));
    return diagnoser
        .diagnose(parse_training_log(lines(seconds), "a.log", iteration_size(scenario())))
        .refusals.front()
        .remedy;
  };
  CHECK(remedy(0.02).find("a global batch of") == std::string::npos);
  CHECK(remedy(0.02).find("sequences of") != std::string::npos);
  CHECK(remedy(1e-4).find("devices,") == std::string::npos);
  CHECK(remedy(1e-4).ends_with("the log's times are of another unit."));
}

TEST_CASE("a log of another model, of other devices, of another batch that does not explain it") {
  CHECK(refused("  num_layers ............ 80\n" + lines(7.4)) == "other-job");
  CHECK(refused("  num_layers ............ 32\n" + lines(7.4)) == "");
  CHECK(refused("Number of trainable parameters = 70,553,706,496\n" + lines(7.4)) == "other-job");
  CHECK(refused("  world_size ............ 64\n" + lines(7.4)) == "other-job");
  CHECK(refused("  micro_batch_size ...... 1\n" + lines(7.6)) == "");
  CHECK(refused("  seq_length ............ 2048\n" + lines(30)) == "other-job");
  CHECK(refused("  seq_length ............ 2048\n" + lines(3.7)) == "other-job");
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

namespace {

// A job as its framework prints it: what a reader of its lines can know, and no more.
struct Foreign {
  costmodel::Scenario scenario;
  double seconds;  // of an iteration
  double tflops;   // a device, as frameworks count
  double parameters;
};

using Writer = std::string (*)(const Foreign& job, int n);

std::string megatron(const Foreign& f, int n) {
  return fmt::format(
      " iteration {}/ 500 | consumed samples: {} | elapsed time per iteration (ms): {:.1f} | "
      "throughput per GPU (TFLOP/s/GPU): {:.1f} | global batch size: {} |\n",
      n, n * f.scenario.training.global_batch, 1e3 * f.seconds, f.tflops + 0.1 * (n % 4),
      f.scenario.training.global_batch);
}

std::string megatron_arguments(const Foreign& f, int n) {
  const std::string begin = fmt::format(
      "  num_layers ...... {}\n  seq_length ...... {}\n  world_size ...... {}\n  "
      "global_batch_size ...... {}\n",
      f.scenario.model.layers, f.scenario.training.sequence, f.scenario.cluster.devices,
      f.scenario.training.global_batch);
  return (n == 1 ? begin : "") +
         fmt::format(" iteration {}/ 500 | elapsed time per iteration (ms): {:.1f} |\n", n,
                     1e3 * f.seconds);
}

std::string torchtitan(const Foreign& f, int n) {
  const double tokens =
      static_cast<double>(f.scenario.training.global_batch * f.scenario.training.sequence) /
      static_cast<double>(f.scenario.cluster.devices);
  const double now = 100 + n * f.seconds;
  return (n == 1 ? fmt::format("Model llama3 size: {:.0f} total parameters\n", f.parameters) : "") +
         fmt::format(
             "[rank0]:[titan] 2026-03-14 08:{:02.0f}:{:06.3f} - root - INFO - step: {}  loss: 7.6  "
             "memory: 44.17GiB(55.51%)  tps: {:.0f}  tflops: {:.2f}  mfu: 31.99%\n",
             std::floor(now / 60), std::fmod(now, 60), n, tokens / f.seconds,
             f.tflops + 0.1 * (n % 4));
}

std::string trainer(const Foreign& f, int n) {
  const std::string begin = fmt::format(
      "***** Running training *****\n  Total train batch size (w. parallel, distributed & "
      "accumulation) = {}\n  Number of trainable parameters = {:.0f}\n",
      f.scenario.training.global_batch, f.parameters);
  return (n == 1 ? begin : "") + fmt::format(" 1%|  | {}/500 [00:10<16:45, {:.2f}{}]\n", n,
                                             f.seconds >= 1 ? f.seconds : 1 / f.seconds,
                                             f.seconds >= 1 ? "s/it" : "it/s");
}

std::string nemo(const Foreign& f, int n) {
  return fmt::format(
      "Training epoch 0, iteration {}/499 | global_batch_size: {} | global_step: {} | "
      "train_step_timing in s: {:.4g}\n",
      n - 1, f.scenario.training.global_batch, n, f.seconds);
}

struct Change {
  const char* from;
  const char* to;
};

const std::string own =
    "model: llama-2-7b\ncluster: {base: dgx-a100, devices: 16}\ntraining: {sequence: 4096, "
    "global_batch: 64, stack: megatron-core-2024}\nplan: {tp: 2, pp: 1, micro_batch: 1, "
    "sequence_parallel: true, zero: 1, recompute: selective}\n";

Foreign foreign(const Change& change, double times = 1) {
  std::string yaml = own;
  yaml.replace(yaml.find(change.from), std::strlen(change.from), change.to);
  Foreign f{.scenario = scenarios::read(yaml)};
  const auto e = costmodel::estimate_of(f.scenario.model, f.scenario.cluster, f.scenario.training,
                                        resolve_plan(f.scenario));
  f.seconds = e.iteration.value * times;
  f.tflops =
      e.model_flops.value / f.seconds / static_cast<double>(f.scenario.cluster.devices) / 1e12;
  f.parameters = e.parameters;
  return f;
}

std::string first_refusal(const Foreign& f, Writer write) {
  static const auto s = scenarios::read(own);
  static JobDiagnoser diagnoser(s, resolve_plan(s));
  std::string log;
  for (int n = 1; n <= 20; ++n) log += write(f, n);
  const auto d = diagnoser.diagnose(parse_training_log(log, "a.log", iteration_size(s)));
  return d.refusals.empty() ? "" : d.refusals.front().name;
}

constexpr Change nothing{"model", "model"}, model{"llama-2-7b", "llama-2-13b"},
    batch{"global_batch: 64", "global_batch: 128"}, sequence{"4096", "8192"},
    devices{"devices: 16", "devices: 32"};

}  // namespace

TEST_CASE("the log of another job is refused, whatever of it its framework prints") {
  struct Row {
    Writer write;
    std::vector<Change> changes;  // of what its lines hold
  };
  const std::vector<Row> rows{{megatron, {model, batch, sequence, devices}},
                              {megatron_arguments, {model, batch, sequence, devices}},
                              {torchtitan, {model, batch, sequence, devices}},
                              {trainer, {model, batch}},
                              {nemo, {batch}}};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(i);
    CHECK(first_refusal(foreign(nothing), rows[i].write) == "");
    for (const Change& change : rows[i].changes) {
      CAPTURE(change.to);
      CHECK(first_refusal(foreign(change), rows[i].write) != "");
    }
  }
}

TEST_CASE("rates above the peak are refused, whatever prints them") {
  for (const Writer write : {megatron, megatron_arguments, torchtitan, trainer, nemo}) {
    CHECK(first_refusal(foreign(nothing, 0.3), write) == "above-peak");
    CHECK(first_refusal(foreign(nothing, 0.6), write) != "");
  }
}

TEST_CASE("a Trainer's log under FSDP counts a rank's shard, which is of this model") {
  const auto refusal = [](int zero, const char* parameters) {
    const auto s = scenarios::read(fmt::format(
        "model: llama-2-7b\ncluster: {{base: dgx-a100, devices: 8}}\ntraining: {{sequence: 4096, "
        "global_batch: 64, stack: torchtitan}}\nplan: {{micro_batch: 1, recompute: full, zero: "
        "{}}}\n",
        zero));
    JobDiagnoser diagnoser(s, resolve_plan(s));
    const std::string log =
        fmt::format("  Number of trainable parameters = {}\n{}", parameters, lines(12));
    const auto d = diagnoser.diagnose(parse_training_log(log, "a.log", iteration_size(s)));
    return d.refusals.empty() ? "" : d.refusals.front().name;
  };
  CHECK(refusal(3, "6,738,415,616") == "");
  CHECK(refusal(3, "842,301,952") == "");
  CHECK(refusal(0, "842,301,952") == "other-job");
  CHECK(refusal(3, "1,684,603,904") == "other-job");
}

}  // namespace job_refusals_test
