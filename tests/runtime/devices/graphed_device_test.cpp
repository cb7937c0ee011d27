// Whole models learn by replayed graphs what they learn without, to the last bit: a graph that was
// started with an address or a number of another time would show.
#include "runtime/devices/graphed_device.hpp"

#include <doctest/doctest.h>

#include "costmodel/estimate/evaluator.hpp"
#include "runtime/ranks/fabric_transport.hpp"
#include "tests/runtime/support/host_executor.hpp"
#include "tests/runtime/support/host_fabric.hpp"
#include "tests/runtime/support/host_graphs.hpp"
#include "tests/runtime/support/trained.hpp"
#include "tests/sanitized.hpp"

namespace graphed_device_test {

using runtime::GraphCounts;
using training_test::gpt;
using training_test::llama;

namespace {

constexpr int graph_steps = sanitized ? 3 : 4;
constexpr bool in_tiles = !thread_sanitized;  // a block is 128 threads there

struct Replayed {
  runtime::RunSummary measured;
  std::vector<GraphCounts> counts;  // of rank 0, after each iteration
};

// Each rank on a device that `make` gives.
Replayed replayed(const costmodel::Scenario& s, const training_test::MakeDevice& make) {
  const auto plan = costmodel::resolve_plan(s);
  costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
  Replayed outcome;
  runtime::run_ranks(static_cast<int>(plan.devices()), {}, [&](runtime::Transport& transport) {
    const auto device = make();
    host_graphs::RecordedDevice recorded(*device);
    const auto most = static_cast<std::size_t>(plan.micro_batches(s.training.global_batch));
    runtime::GraphedDevice graphed(recorded, recorded, most);
    runtime::TrainingOptions options{.iterations = graph_steps};
    options.executor.reuse = runtime::Reuse::lowest;
    options.each = [&](const auto&) {
      graphed.warmed_up();
      if (transport.rank() == 0) outcome.counts.push_back(graphed.counts());
    };
    const auto all = runtime::gather_measurements(
        transport, runtime::train(evaluator, plan, transport, graphed, options));
    if (transport.rank() == 0)
      outcome.measured =
          runtime::summarise(all, plan, s.training.global_batch * s.training.sequence);
  });
  return outcome;
}

costmodel::Scenario scenario_for(const char* model, const std::string& plan, bool flash = false) {
  const bool four = plan.find("tp: 2") != plan.npos && plan.find("pp: 2") != plan.npos;
  const int ranks = four ? 4 : plan == "{micro_batch: 4}" ? 1 : 2;
  auto s = training_test::scenario(model, "stack: shardplan-cpu", plan, ranks);
  s.training.overlap.overlap_grad_reduce = false;  // no thread beside
  s.training.stack.kernels.attention =
      flash ? costmodel::AttentionKernel::flash2 : costmodel::AttentionKernel::unfused;
  return s;
}

const auto on_kernels = [] { return std::make_unique<HostKernelDevice>(); };

// The same losses and memory as without graphs. What an iteration begins with is another stretch
// from the second one on, behind an optimizer's step: it is captured in the third, all else before.
void check_the_same(const costmodel::Scenario& s, const training_test::MakeDevice& make) {
  const FarMemory::Unwatched open;
  const auto plain = training_test::trained(s, graph_steps, make);
  const Replayed own = replayed(s, make);
  CHECK(own.measured.loss == plain.measured.loss);
  CHECK(own.measured.memory == plain.measured.memory);
  REQUIRE(own.counts.size() == graph_steps);
  CHECK(own.counts[0].captured == 0);
  CHECK(own.counts[1].captured > 0);
  CHECK(own.counts[2].captured <= own.counts[1].captured + 1);
  CHECK(own.counts.back().captured == own.counts[2].captured);
  const auto in_last = [&](auto count) {
    return count(own.counts.back()) - count(own.counts[graph_steps - 2]);
  };
  CHECK(in_last([](const GraphCounts& c) { return c.replayed; }) > 0);
  CHECK(own.counts.back().refused.empty());
}

}  // namespace

TEST_CASE("replayed, a model learns the same, however it is cut") {
  for (const std::string plan : {
           "{micro_batch: 4}",
           "{tp: 2, micro_batch: 2}",
           "{tp: 2, sequence_parallel: true, pp: 2, micro_batch: 2, schedule: 1f1b}",
           "{pp: 2, vpp: 2, schedule: interleaved, micro_batch: 2, recompute: full}",
           "{pp: 2, micro_batch: 1, schedule: gpipe, recompute: selective}",
           "{dp: 2, zero: 1, micro_batch: 2}",
           "{dp: 2, zero: 3, micro_batch: 2}",
       }) {
    // A pipeline, and gradients that ranks sum.
    if (thread_sanitized && plan.find("gpipe") == plan.npos && plan.find("zero: 3") == plan.npos)
      continue;
    CAPTURE(plan);
    check_the_same(scenario_for(llama, plan, plan.find("pp") != plan.npos), on_kernels);
  }
}

TEST_CASE("dropout draws anew each time, beside the graphs") {
  for (const std::string plan : {"{micro_batch: 4}", "{pp: 2, micro_batch: 2, recompute: full}"}) {
    if (thread_sanitized && plan == "{micro_batch: 4}") continue;  // one thread
    CAPTURE(plan);
    check_the_same(scenario_for(gpt, plan), on_kernels);
  }
}

TEST_CASE("the scale of fp16's loss is in no graph") {
  const auto s = training_test::in_16_bits(scenario_for(llama, "{pp: 2, micro_batch: 2}", in_tiles),
                                           costmodel::Precision::fp16);
  check_the_same(s, [] { return std::make_unique<KernelDeviceOnHost<runtime::F16>>(); });
}

// One that was not fused would be rounded once more.
TEST_CASE("a GELU that comes with its product does so in a graph" *
          doctest::skip(thread_sanitized)) {  // one rank, one thread
  auto s = scenario_for(gpt, "{micro_batch: 4}");
  s.model.dropout = 0;
  check_the_same(training_test::in_bf16(s),
                 [] { return std::make_unique<KernelDeviceOnHost<runtime::Bf16>>(); });
}

TEST_CASE("tensors that go beside the computation follow what a graph was to make") {
  for (const std::string plan :
       {"{tp: 2, pp: 2, micro_batch: 2, schedule: 1f1b}", "{dp: 2, micro_batch: 2}"}) {
    CAPTURE(plan);
    auto s = scenario_for(llama, plan);
    s.training.overlap.overlap_grad_reduce = true;
    const auto resolved = costmodel::resolve_plan(s);
    costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
    const runtime::FabricPlan fabric(
        resolved,
        runtime::lowered_schedule(resolved, resolved.micro_batches(s.training.global_batch)),
        s.model.tie_embeddings);
    const auto over_fabric = [&](bool graphs) {
      host_fabric::Meeting meeting(fabric);
      runtime::RunSummary measured;
      runtime::run_ranks(
          static_cast<int>(resolved.devices()), {}, [&](runtime::Transport& transport) {
            host_fabric::StreamedCpu streamed;
            host_graphs::RecordedDevice recorded(streamed);
            runtime::GraphedDevice graphed(recorded, recorded, 16);
            runtime::Device& device = graphs ? static_cast<runtime::Device&>(graphed) : streamed;
            host_fabric::HostFabric own(meeting, transport.rank(), *streamed.streams());
            runtime::FabricTransport tensors(transport, fabric, own, *device.streams(),
                                             device.memory(), costmodel::Seconds(60));
            runtime::TrainingOptions options{.iterations = graph_steps};
            options.executor.fabric = &tensors;
            options.executor.reuse = runtime::Reuse::lowest;
            options.each = [&](const auto&) { graphed.warmed_up(); };
            const auto all = runtime::gather_measurements(
                transport, runtime::train(evaluator, resolved, transport, device, options));
            if (transport.rank() == 0) {
              measured =
                  runtime::summarise(all, resolved, s.training.global_batch * s.training.sequence);
              CHECK((graphed.counts().replayed > 0) == graphs);
            }
          });
      return measured;
    };
    CHECK(over_fabric(true).loss == over_fabric(false).loss);
  }
}

}  // namespace graphed_device_test
