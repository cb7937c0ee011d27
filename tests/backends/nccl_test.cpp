// NCCL: that it is found or said to be missing, and, with a GPU for each of two ranks, whole models
// over it against messages by way of the host.
#include "runtime/cuda/nccl_fabric.hpp"

#include <doctest/doctest.h>

#include <string>

#include "costmodel/estimate/evaluator.hpp"
#include "runtime/cuda/device_query.hpp"
#include "runtime/cuda/gpu_device.hpp"
#include "runtime/ranks/tensor_route.hpp"
#include "tests/runtime/support/trained.hpp"

namespace nccl_test {

namespace {

constexpr int steps = 20;

// As `shardplan run --backend cuda` does it, a GPU a rank; the notes of rank 0.
runtime::RunSummary over_nccl(const costmodel::Scenario& s, std::string& note) {
  const auto plan = costmodel::resolve_plan(s);
  costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
  const auto gpus = runtime::cuda::query_devices().gpus;
  runtime::RunSummary measured;
  runtime::run_ranks(static_cast<int>(plan.devices()), {}, [&](runtime::Transport& host) {
    const int index = host.rank() % static_cast<int>(gpus.size());
    const auto device = runtime::cuda::make_gpu_device({.index = index});
    const runtime::FabricMaker maker{
        runtime::cuda::nccl_missing, runtime::cuda::make_nccl_id,
        [](runtime::Device& own, const runtime::FabricRequest& request) {
          return runtime::cuda::make_nccl_fabric(*own.streams(), request);
        }};
    const auto way = runtime::tensor_way(
        maker, host, *device, {"", "", gpus[static_cast<std::size_t>(index)].bus},
        {plan, runtime::lowered_schedule(plan, plan.micro_batches(s.training.global_batch)),
         s.model.tie_embeddings},
        costmodel::Seconds(60));
    runtime::TrainingOptions options{.iterations = steps};
    options.executor.fabric = way.transport.get();
    const auto all =
        runtime::gather_measurements(host, runtime::train(evaluator, plan, host, *device, options));
    if (host.rank() != 0) return;
    note = way.note;
    measured = runtime::summarise(all, plan, s.training.global_batch * s.training.sequence);
  });
  return measured;
}

}  // namespace

TEST_CASE("NCCL's library answers for its version, or a sentence says why not") {
  const std::string missing = runtime::cuda::nccl_missing();
  CHECK((runtime::cuda::nccl_version() == 0) == !missing.empty());
  if (missing.empty()) CHECK(runtime::cuda::nccl_version() >= 21800);  // splits without blocking
  CHECK(runtime::cuda::query_devices().versions.nccl == runtime::cuda::nccl_version());
}

TEST_CASE("a library that is not there is said to be missing") {
  const std::string missing = runtime::cuda::nccl_missing_in("libno-such-nccl.so");
  if (runtime::cuda::nccl_missing().find("without NCCL's header") != std::string::npos) return;
  CHECK(missing.starts_with("NCCL cannot be loaded: libno-such-nccl.so"));
  CHECK(runtime::cuda::nccl_missing_in("libm.so.6") ==
        "NCCL has no ncclGetVersion: it is older than this program");
}

TEST_CASE("over NCCL, models learn, hold and send what they do by way of the host") {
  const auto report = runtime::cuda::query_devices();
  if (!report.error.empty()) {
    MESSAGE("skipped: no device");
    return;
  }
  for (const char* plan :
       {"{tp: 2, sequence_parallel: true, micro_batch: 2}", "{pp: 2, micro_batch: 2}",
        "{pp: 2, vpp: 2, micro_batch: 2, schedule: interleaved}", "{dp: 2, micro_batch: 2}",
        "{dp: 2, micro_batch: 2, zero: 1}", "{dp: 2, micro_batch: 2, zero: 3}"}) {
    CAPTURE(std::string(plan));
    const auto s = training_test::scenario(training_test::gpt, "stack: shardplan-cuda", plan, 2);
    const auto reference = training_test::trained(s, steps).measured;
    std::string note;
    const auto own = over_nccl(s, note);
    const bool found = runtime::cuda::nccl_missing().empty();
    CHECK(note.starts_with(!found                   ? "messages by way of the host: NCCL"
                           : report.gpus.size() < 2 ? "messages by way of the host: ranks 0, 1"
                                                    : "messages by NCCL"));
    CHECK(own.memory == reference.memory);
    CHECK(training_test::loss_difference(own.loss, reference.loss) <= training_test::loss_bound);
    CHECK(own.traffic.front().total().value == reference.traffic.front().total().value);
  }
}

}  // namespace nccl_test
