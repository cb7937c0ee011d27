// What a run keeps of its iterations, and what it says when it cannot go on.
#include "runtime/training/run_progress.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "runtime/devices/cpu_device.hpp"
#include "runtime/ranks/thread_transport.hpp"
#include "runtime/training/training_run.hpp"

namespace run_progress_test {

using costmodel::Seconds;
using runtime::RankMeasurement;

namespace {

RankMeasurement one(double seconds, double loss, double forward) {
  RankMeasurement m;
  m.iterations = {Seconds(seconds)};
  m.loss_sums = {loss};
  m.forward = {Seconds(forward)};
  m.backward = {Seconds(2 * forward)};
  m.end = Seconds(seconds);
  m.peak = static_cast<std::int64_t>(seconds);
  return m;
}

costmodel::Scenario tiny() {
  const costmodel::ConfigPath path{{SHARDPLAN_SOURCE_DIR "/configs"}};
  return costmodel::load_scenario(
      costmodel::scenario_file("tiny-gpt-cpu", path), path,
      {"training.sequence=16", "training.global_batch=4", "plan.micro_batch=1"});
}

std::string end_of(const runtime::TrainingOptions& options, Seconds patience = Seconds(60)) {
  const auto s = tiny();
  const auto plan = costmodel::resolve_plan(s);
  costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
  try {
    runtime::run_ranks(4, {patience}, [&](runtime::Transport& transport) {
      runtime::CpuDevice device;
      runtime::train(evaluator, plan, transport, device, options);
    });
  } catch (const runtime::RunFault& fault) {
    return fault.what();
  }
  return "";
}

}  // namespace

TEST_CASE("stage times are means over all iterations but the first") {
  runtime::RunProgress progress;
  CHECK(progress.so_far().empty());
  progress.add({one(9, 4, 5)});
  CHECK(progress.so_far().front().forward.front() == Seconds(5));
  progress.add({one(2, 3, 1)});
  CHECK(progress.so_far().front().forward.front() == Seconds(1));
  progress.add({one(3, 2, 2)});
  const auto all = progress.so_far().front();
  CHECK(all.iterations == std::vector{Seconds(9), Seconds(2), Seconds(3)});
  CHECK(all.loss_sums == std::vector{4.0, 3.0, 2.0});
  CHECK(all.forward.front().value == doctest::Approx(1.5));
  CHECK(all.backward.front().value == doctest::Approx(3));
  CHECK(all.end == Seconds(3));
  CHECK(all.peak == 3);
}

TEST_CASE("a rank that needs more than it may is named, with its stage and what it was doing") {
  // Weights and states fit into 7.5 MiB, and what a forward pass keeps does not.
  runtime::TrainingOptions options;
  options.executor.memory_limit = 7'500 << 10;
  const std::string end = end_of(options);
  CAPTURE(end);
  CHECK(end.starts_with("rank "));
  CHECK(end.find(", pipeline rank 0, iteration 1, 0F0: out of memory: ") != std::string::npos);
  CHECK(end.find(" wanted, ") != std::string::npos);
  CHECK(end.ends_with(" of 7680000 bytes in use"));
  options.executor.memory_limit = 1 << 20;
  CHECK(end_of(options).find(", making its weights and states: out of memory: ") !=
        std::string::npos);
}

TEST_CASE("whatever a rank throws is said with where it was") {
  runtime::TrainingOptions options;
  options.each = [](const RankMeasurement& m) {
    if (m.pipeline_rank == 1) throw std::bad_alloc();
  };
  CHECK(end_of(options).find(", pipeline rank 1, iteration 1, telling rank 0 how it went: the "
                             "machine's memory ran out") != std::string::npos);
  options.each = [](const RankMeasurement& m) {
    if (m.pipeline_rank == 1) throw std::runtime_error("the disk is full");
  };
  CHECK(end_of(options).find("how it went: the disk is full") != std::string::npos);
}

TEST_CASE("a wait in vain says at which action") {
  runtime::TrainingOptions options;
  options.each = [](const RankMeasurement& m) {
    if (m.pipeline_rank == 1) std::this_thread::sleep_for(std::chrono::seconds(3));
  };
  const std::string end = end_of(options, Seconds(0.1));
  CAPTURE(end);
  CHECK(end.find(" waited 0.1 s for ") != std::string::npos);
  CHECK(end.find(", pipeline rank ") != std::string::npos);
  CHECK(end.find(", iteration ") != std::string::npos);
}

TEST_CASE("losses that are no numbers are warned of") {
  CHECK(runtime::loss_warning({6.2, 5.1}) == "");
  CHECK(runtime::loss_warning({6.2, std::numeric_limits<double>::quiet_NaN()}) ==
        "warning: the loss is nan from iteration 2 on");
  CHECK(runtime::loss_warning({std::numeric_limits<double>::infinity()}) ==
        "warning: the loss is inf from iteration 1 on");
}

}  // namespace run_progress_test
