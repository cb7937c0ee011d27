// Memory of a stage against the published closed forms: ZeRO's states, activations kept in flight.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "costmodel/plan/plan_rules.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "costmodel/schedule/chrome_trace.hpp"
#include "tests/costmodel/support/estimated.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace memory_test {

using namespace costmodel;
using fixtures::Case;
using fixtures::cases;
using fixtures::estimated;
using fixtures::relative_error;

TEST_CASE("ZeRO memory: 16, 4 + 12/N, 2 + 14/N and 16/N bytes a parameter") {
  for (const Case& c : {cases[0], cases[1]}) {
    const double psi = parameter_count(fixtures::gpt(c));
    for (const int n : {1, 2, 8, 16}) {
      ParallelPlan plan;
      plan.dp = n;
      const double expected[] = {16 * psi, 4 * psi + 12 * psi / n, 2 * psi + 14 * psi / n,
                                 16 * psi / n};
      for (int zero = 0; zero <= 3; ++zero) {
        CAPTURE(n);
        CAPTURE(zero);
        plan.zero = zero;
        const StageMemory memory = estimated(c, plan).memory.at(0);
        const Bytes states = memory.weights + memory.gradients + memory.optimizer;
        CHECK(relative_error(states.value, expected[zero]) <= 1e-12);
      }
    }
  }
}

TEST_CASE("bytes a parameter by precision and optimizer") {
  TrainingSpec t = fixtures::training(1, 1);
  CHECK(weight_bytes_per_parameter(t) + gradient_bytes_per_parameter(t) +
            optimizer_bytes_per_parameter(t) ==
        16);
  t.gradient_precision = Precision::fp32;
  CHECK(gradient_bytes_per_parameter(t) == 4);  // Megatron's 18 bytes
  t.optimizer = Optimizer::sgd;
  CHECK(optimizer_bytes_per_parameter(t) == 8);
  t.stack.memory.master_weights = false;
  CHECK(optimizer_bytes_per_parameter(t) == 4);
  t.optimizer = Optimizer::adam;
  t.precision = Precision::fp32;
  CHECK(weight_bytes_per_parameter(t) + gradient_bytes_per_parameter(t) +
            optimizer_bytes_per_parameter(t) ==
        16);
}

TEST_CASE("kept activations follow the schedule: m, min(p - k, m), and 1 + (p-1)/pv of a stage") {
  const Case c = {16, 1024, 16, 51200, 512, 64};
  ParallelPlan plan;
  plan.pp = 4;
  const auto in_flight_on = [&](ScheduleKind kind, int v) {
    plan.schedule = kind;
    plan.vpp = v;
    std::vector<double> counts;
    for (const auto& memory : estimated(c, plan).memory)
      counts.push_back(memory.in_flight_micro_batches);
    return counts;
  };
  CHECK(in_flight_on(ScheduleKind::gpipe, 1) == std::vector<double>{64, 64, 64, 64});
  CHECK(in_flight_on(ScheduleKind::one_f_one_b, 1) == std::vector<double>{4, 3, 2, 1});
  CHECK(in_flight_on(ScheduleKind::serial, 1) == std::vector<double>{1, 1, 1, 1});
  for (const int v : {2, 4}) {  // Korthikanti et al. 2022, section 4.2.3
    CHECK(in_flight_on(ScheduleKind::interleaved, v).front() == 4 * (1 + 3.0 / (4 * v)));
  }
}

TEST_CASE("equal shares written out hold what equal shares hold") {
  // Two ways to count what is in flight: by end chunks for equal shares, chunk by chunk for given
  // ones.
  TrainingSpec training = fixtures::training(48, 512);
  training.overlap.pp_overlap = true;
  const ModelSpec model = fixtures::gpt(24, 1024, 16, 51200, 512);
  for (const int v : {2, 3, 6}) {
    ParallelPlan plan;
    plan.pp = 4;
    plan.vpp = v;
    plan.schedule = ScheduleKind::interleaved;
    Evaluator evaluator(model, fixtures::cluster(4), training);
    const auto shared = evaluator.cost(plan).ranks;
    plan.stage_layers.assign(static_cast<std::size_t>(4 * v), 24 / (4 * v));
    const auto written = evaluator.cost(plan).ranks;
    CHECK(to_string(plan).ends_with("layers " + std::to_string(24 / (4 * v)) + "x" +
                                    std::to_string(4 * v)));
    for (std::size_t r = 0; r < shared.size(); ++r) {
      CHECK(relative_error(written[r].memory.activations.value,
                           shared[r].memory.activations.value) <= 1e-12);
      CHECK(written[r].memory.in_flight_micro_batches == shared[r].memory.in_flight_micro_batches);
    }
  }
}

namespace {

// By rank: the most that a trace's counters say.
struct Counted {
  std::vector<double> in_flight, bytes;
};

Counted counted(const Timeline& timeline) {
  Counted most{std::vector<double>(static_cast<std::size_t>(timeline.ranks)), {}};
  most.bytes = most.in_flight;
  const auto trace = nlohmann::json::parse(to_chrome_trace(timeline, {}));
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "C") continue;
    const auto rank = event.at("pid").get<std::size_t>();
    const bool flies = event.at("name") == "in flight";
    const auto& args = event.at("args");
    double& held = flies ? most.in_flight[rank] : most.bytes[rank];
    held = std::max(held, flies ? args.at("micro-batches").get<double>()
                                : args.at("GiB").get<double>() * (1 << 30));
  }
  return most;
}

}  // namespace

TEST_CASE("the counters of a trace peak at what the ledger says") {
  const auto model = fixtures::gpt(cases[0]);
  for (std::size_t i = 0; i < schedule_names().size(); ++i) {
    ParallelPlan plan;
    plan.schedule = static_cast<ScheduleKind>(i);
    plan.pp = 4;
    plan.vpp = row_of(plan.schedule).fewest_chunks;
    CAPTURE(to_string(plan));
    TrainingSpec training = fixtures::training(16, 512);
    training.stack.offers.zero_bubble = true;
    training.stack.offers.dualpipe = true;
    training.overlap.pp_overlap = true;
    const auto machines = fixtures::cluster(4);
    REQUIRE(is_valid(plan, model, machines, training));
    Evaluator evaluator(model, machines, training);
    const Estimate e = evaluator.estimate(plan);
    const Counted most = counted(evaluator.timeline(plan));
    const PlanCost bound = evaluator.cost(plan);
    for (std::size_t r = 0; r < e.memory.size(); ++r) {
      CAPTURE(r);
      const StageMemory& ledger = e.memory[r];
      if (splits_backward(plan.schedule)) {  // a search has the limit that the schedule is made for
        CHECK(most.bytes[r] <= ledger.total().value + 0.6);
        CHECK(most.bytes[r] > (ledger.total() - ledger.activations).value);
        CHECK(ledger.total() <= bound.ranks[r].memory.total());
        if (row_of(plan.schedule).held_limit != nullptr)
          CHECK(std::abs(most.bytes[r] - ledger.total().value) <= 0.6);
        continue;
      }
      CHECK(relative_error(most.in_flight[r], ledger.in_flight_micro_batches) <= 1e-12);
      CHECK(std::abs(most.bytes[r] - ledger.total().value) <= 0.6);  // integers
    }
  }
}

// What the dummy gradients of a stack take on each rank, without the allocator's reserve.
std::vector<double> dummies(const std::string& model, const std::string& plan) {
  const auto ranks = [&](const char* has) {
    const auto s = scenarios::read(
        "model: " + model +
        "\ncluster: {base: dgx-b200, devices: 8}\ntraining: {global_batch: 8, "
        "sequence: 4096, stack: {base: megatron-core-2025, memory: {fragmentation: 0}, "
        "dummy_gradients: " +
        has + "}}\nplan: " + plan + "\n");
    Evaluator evaluator(s.model, s.cluster, s.training);
    return evaluator.cost(resolve_plan(s)).ranks;
  };
  const auto with = ranks("true"), without = ranks("false");
  std::vector<double> more;
  for (std::size_t r = 0; r < with.size(); ++r)
    more.push_back((with[r].memory.total() - without[r].memory.total()).value);
  return more;
}

TEST_CASE("an optimizer's fp32 copies of its shard of 16-bit gradients meet no activations") {
  // One device with experts that no other has; short sequences, so that the step is the fullest.
  const auto memory = [](int sequence, const char* more) {
    const auto s = scenarios::read(fmt::format(
        "model: {{base: mixtral-8x7b, layers: 2}}\ncluster: {{base: dgx-h100, devices: 8}}\n"
        "training: {{global_batch: 8, sequence: {}, stack: {{base: megatron-bridge, memory: "
        "{{fragmentation: 0}}{}}}}}\nplan: {{dp: 8, ep: 8, micro_batch: 1, zero: 1}}\n",
        sequence, more));
    Evaluator evaluator(s.model, s.cluster, s.training);
    return std::pair(evaluator.cost(resolve_plan(s)).ranks.front(),
                     evaluator.estimate(resolve_plan(s)));
  };
  const auto [copied, shown] = memory(128, "");
  const RankWeights& own = copied.weights;
  const double parameters = own.experts + (own.all - own.experts) / 8;
  CHECK(relative_error(copied.memory.widened.value, 4 * parameters) <= 1e-9);
  CHECK(copied.memory.peaks_in_step());
  const StageMemory& peak = shown.memory.front();  // at it, gradients alone
  CHECK(peak.activations == Bytes(0));
  CHECK(peak.gradients == copied.memory.gradients + copied.memory.widened);
  CHECK(peak.total() == copied.memory.total());
  const auto total = [&](int sequence, const char* more) {
    return memory(sequence, more).first.memory.total();
  };
  CHECK(total(128, "") > total(128, ", widened_gradients: never"));
  CHECK(total(16384, "") == total(16384, ", widened_gradients: never"));
  CHECK(total(128, ", gradient_precision: fp32, widened_gradients: always") ==
        total(128, ", gradient_precision: fp32, widened_gradients: never"));
}

TEST_CASE("a dummy gradient is kept for each shape of a weight, the head's on its stage") {
  // Llama 3 70B: 80 heads of 128 for queries, keys and values, two products of 28,672 in one.
  const double layer = 8192.0 * (80 * 128 + 8192 + 3 * 28672), head = 8192.0 * 128256;
  const std::string model = "{base: llama-3-70b, layers: 8}";
  const auto near = [](double a, double b) { return relative_error(a, b) <= 1e-9; };
  for (const int tp : {1, 2}) {
    const auto single = dummies(model, fmt::format("{{tp: {}, zero: 1}}", tp));
    CHECK(near(single.at(0), 2 * (layer + head) / tp));
    const auto cut = dummies(model, fmt::format("{{tp: {}, pp: 2, zero: 1}}", tp));
    CHECK(near(cut.at(0), 2 * layer / tp));
    CHECK(near(cut.at(1), 2 * (layer + head) / tp));
  }
  CHECK(dummies(model, "{zero: 3}").at(0) == 0);
  // All experts of a rank have one shape together.
  const std::string mixtral = "{base: mixtral-8x7b, layers: 4}";
  CHECK(
      near(dummies(mixtral, "{ep: 8, zero: 1}").at(0), dummies(mixtral, "{ep: 2, zero: 1}").at(0)));
}

}  // namespace memory_test
