// Tensors that go from rank to rank without the host, on threads that stand for a GPU's streams:
// models learn, hold and send what they do by way of messages, and nothing waits for ever.
#include "runtime/ranks/fabric_transport.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <latch>
#include <numeric>
#include <string>

#include "costmodel/estimate/evaluator.hpp"
#include "runtime/backend/tags.hpp"
#include "tests/runtime/support/host_fabric.hpp"
#include "tests/runtime/support/trained.hpp"

namespace fabric_transport_test {

using host_fabric::HostFabric;
using host_fabric::Meeting;
using host_fabric::StreamedCpu;
using runtime::FabricPlan;
using runtime::FabricTransport;
using training_test::gpt;
using training_test::llama;

namespace {

constexpr int steps = sanitized ? 2 : 6;

FabricPlan fabric_plan(const costmodel::Scenario& s, const costmodel::ParallelPlan& plan) {
  return {plan, runtime::lowered_schedule(plan, plan.micro_batches(s.training.global_batch)),
          s.model.tie_embeddings};
}

runtime::RunSummary over_fabric(const costmodel::Scenario& s) {
  const auto plan = costmodel::resolve_plan(s);
  costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
  const FabricPlan fabric = fabric_plan(s, plan);
  Meeting meeting(fabric);
  runtime::RunSummary measured;
  runtime::run_ranks(static_cast<int>(plan.devices()), {}, [&](runtime::Transport& transport) {
    StreamedCpu device;
    HostFabric own(meeting, transport.rank(), *device.streams());
    FabricTransport tensors(transport, fabric, own, *device.streams(), device.memory(),
                            costmodel::Seconds(60));
    runtime::TrainingOptions options{.iterations = steps};
    options.executor.fabric = &tensors;
    const auto all = runtime::gather_measurements(
        transport, runtime::train(evaluator, plan, transport, device, options));
    if (transport.rank() == 0)
      measured = runtime::summarise(all, plan, s.training.global_batch * s.training.sequence);
  });
  return measured;
}

// What every rank of two that do the same sees; `program` gets the rank's transport of tensors.
void on_two(const char* plan_text, double patience, Meeting* failing,
            const std::function<void(FabricTransport&, StreamedCpu&)>& program) {
  const auto s = training_test::scenario(gpt, "stack: shardplan-cpu", plan_text, 2);
  const auto plan = costmodel::resolve_plan(s);
  const FabricPlan fabric = fabric_plan(s, plan);
  Meeting meeting(fabric);
  if (failing != nullptr) meeting.failing_rank = failing->failing_rank.load();
  runtime::run_ranks(2, {}, [&](runtime::Transport& transport) {
    StreamedCpu device;
    HostFabric own(meeting, transport.rank(), *device.streams());
    FabricTransport tensors(transport, fabric, own, *device.streams(), device.memory(),
                            costmodel::Seconds(patience));
    program(tensors, device);
    tensors.settle();
  });
}

std::span<std::byte> bytes_of(std::vector<float>& values) {
  return std::as_writable_bytes(std::span(values));
}

std::array<double, 5> sent(const costmodel::Traffic& t) {
  return {t.all_reduce.value, t.all_gather.value, t.reduce_scatter.value, t.all_to_all.value,
          t.send.value};
}

struct Way {
  const char *model, *training, *plan;
  int devices;
};

}  // namespace

TEST_CASE("models learn, hold and send what they do by way of messages") {
  const std::vector<Way> ways{
      {gpt, "", "{tp: 2, sequence_parallel: true, micro_batch: 2}", 2},
      {llama, "", "{tp: 4, micro_batch: 2}", 4},
      {gpt, "", "{pp: 4, micro_batch: 1, schedule: gpipe}", 4},
      {gpt, "", "{pp: 4, micro_batch: 1, schedule: 1f1b, recompute: full}", 4},
      {llama, "", "{pp: 2, vpp: 4, micro_batch: 1, schedule: interleaved}", 2},
      {gpt, "", "{pp: 2, tp: 2, dp: 2, micro_batch: 1, sequence_parallel: true}", 8},
      {gpt, ", overlap: {overlap_grad_reduce: true}", "{pp: 2, dp: 2, micro_batch: 1}", 4},
      {llama, ", overlap: {overlap_grad_reduce: true}", "{dp: 3, micro_batch: 1, zero: 1}", 3},
      {llama, "", "{dp: 4, micro_batch: 1, zero: 2}", 4},
      {gpt, "", "{dp: 2, tp: 2, micro_batch: 1, zero: 3}", 4},
  };
  for (const Way& way : thinned(ways, thread_sanitized ? 3 : 2)) {
    CAPTURE(std::string(way.plan));
    auto s = training_test::scenario(way.model, fmt::format("stack: shardplan-cpu{}", way.training),
                                     way.plan, way.devices);
    if (way.devices == 3) s.training.global_batch = 15;
    const auto own = over_fabric(s);
    const auto reference = training_test::trained(s, steps).measured;
    CHECK(own.memory == reference.memory);
    REQUIRE(own.traffic.size() == reference.traffic.size());
    for (std::size_t i = 0; i < own.traffic.size(); ++i)
      CHECK(sent(own.traffic[i]) == sent(reference.traffic[i]));
    CHECK(training_test::loss_difference(own.loss, reference.loss) <= training_test::loss_bound);
  }
}

TEST_CASE("a sender goes on though the receiver comes late, and its tensor may be used again") {
  on_two("{pp: 2, micro_batch: 1}", 60, nullptr, [](FabricTransport& tensors, StreamedCpu&) {
    constexpr int count = 10;
    std::vector<float> values(1000);
    if (tensors.rank() == 0) {
      for (int i = 0; i < count; ++i) {
        std::ranges::fill(values, static_cast<float>(i));
        tensors.send(1, runtime::forward_tag(0, i), bytes_of(values));
      }
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    for (int i = 0; i < count; ++i) {
      if (i % 3 == 0) tensors.expect(0, runtime::forward_tag(0, i), values.size() * sizeof(float));
      tensors.recv(0, runtime::forward_tag(0, i), bytes_of(values));
      CHECK(std::accumulate(values.begin(), values.end(), 0.0) == 1000.0 * i);
    }
  });
}

TEST_CASE("a message that is not the next one is no other one") {
  CHECK_THROWS_WITH_AS(
      on_two("{pp: 2, micro_batch: 1}", 60, nullptr,
             [](FabricTransport& tensors, StreamedCpu&) {
               std::vector<float> values(4);
               if (tensors.rank() == 0)
                 return tensors.send(1, runtime::forward_tag(0, 0), bytes_of(values));
               tensors.expect(0, runtime::forward_tag(0, 0), 16);
               tensors.recv(0, runtime::forward_tag(0, 1), bytes_of(values));
             }),
      "rank 1 wants 16 bytes, the forward result of stage 0, micro-batch 1, but 16 bytes, the "
      "forward result of stage 0, micro-batch 0, come first",
      runtime::RunFault);
}

TEST_CASE("who waits in vain says for what, and all end") {
  std::latch gave_up(1);  // until when rank 0 is there, and sends nothing
  const auto message = [&](FabricTransport& tensors, StreamedCpu& device) {
    if (tensors.rank() == 0) return gave_up.wait();
    std::vector<float> values(4);
    try {
      tensors.recv(0, runtime::forward_tag(0, 3), bytes_of(values));
      device.memory().wait();
    } catch (const runtime::RunFault&) {
      gave_up.count_down();
      throw;
    }
    gave_up.count_down();
  };
  CHECK_THROWS_WITH_AS(on_two("{pp: 2, micro_batch: 1}", 0.05, nullptr, message),
                       "rank 1 waited 0.05 s for the forward result of stage 0, micro-batch 3 from "
                       "rank 0",
                       runtime::RunFault);
  const auto collective = [](FabricTransport& tensors, StreamedCpu&) {
    std::vector<float> values(4);
    if (tensors.rank() == 0) return;
    tensors.group(runtime::FabricUse::tensor)->all_reduce(values, runtime::Reduction::sum);
  };
  CHECK_THROWS_WITH_AS(on_two("{tp: 2, micro_batch: 1}", 0.05, nullptr, collective),
                       "rank 1 waited 0.05 s for an all-reduce of the tensor group of ranks 0, 1",
                       runtime::RunFault);
  const auto unheard = [](FabricTransport& tensors, StreamedCpu&) {
    std::vector<float> values(4);
    if (tensors.rank() == 0) tensors.send(1, runtime::forward_tag(0, 3), bytes_of(values));
  };
  CHECK_THROWS_WITH_AS(on_two("{pp: 2, micro_batch: 1}", 0.05, nullptr, unheard),
                       "rank 0 waited 0.05 s for rank 1 to take the forward result of stage 0, "
                       "micro-batch 3",
                       runtime::RunFault);
}

TEST_CASE("what goes wrong in a communicator ends the run at once") {
  const auto s = training_test::scenario(gpt, "stack: shardplan-cpu", "{tp: 2}", 2);
  const FabricPlan plan = fabric_plan(s, costmodel::resolve_plan(s));
  Meeting failing(plan);
  failing.failing_rank = 1;
  CHECK_THROWS_WITH_AS(
      on_two(
          "{tp: 2, micro_batch: 1}", 60, &failing,
          [](FabricTransport& tensors, StreamedCpu&) {
            std::vector<float> values(4);
            if (tensors.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
            tensors.group(runtime::FabricUse::tensor)->all_reduce(values, runtime::Reduction::sum);
          }),
      "rank 1: the tensor group's network went away", runtime::RunFault);
}

}  // namespace fabric_transport_test
