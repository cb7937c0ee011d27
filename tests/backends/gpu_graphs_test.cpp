// CUDA graphs: what a GPU learns by them is what it learns without. Where there is none it says so.
#include "runtime/devices/graphed_device.hpp"

#include <doctest/doctest.h>

#include "costmodel/estimate/evaluator.hpp"
#include "runtime/cuda/device_query.hpp"
#include "runtime/cuda/gpu_device.hpp"
#include "tests/runtime/support/trained.hpp"

namespace gpu_graphs_test {

namespace {

// The losses of six steps by one GPU, and how often a graph was started again.
std::vector<double> losses(const costmodel::Scenario& s, bool graphs, std::int64_t& replayed) {
  const auto plan = costmodel::resolve_plan(s);
  costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
  std::vector<double> found;
  runtime::run_ranks(1, {}, [&](runtime::Transport& transport) {
    const auto gpu = runtime::cuda::make_gpu_device({});
    runtime::GraphedDevice graphed(*gpu, *gpu->graphs(), 16);
    runtime::TrainingOptions options{.iterations = 6};
    options.executor.reuse = runtime::Reuse::lowest;
    options.each = [&](const auto&) { graphed.warmed_up(); };
    const auto own =
        runtime::train(evaluator, plan, transport,
                       graphs ? static_cast<runtime::Device&>(graphed) : *gpu, options);
    found = runtime::summarise({own}, plan, s.training.global_batch * s.training.sequence).loss;
    replayed = graphed.counts().replayed;
  });
  return found;
}

}  // namespace

TEST_CASE("launches replayed from graphs leave what a GPU learns as it is") {
  if (!runtime::cuda::query_devices().error.empty()) {
    MESSAGE("skipped: no device");
    return;
  }
  for (const char* model : {training_test::gpt, training_test::llama}) {
    for (const char* plan : {"{micro_batch: 4}", "{micro_batch: 2, recompute: full}"}) {
      CAPTURE(std::string(plan));
      const auto s = training_test::scenario(model, "stack: shardplan-cpu", plan, 1);
      std::int64_t with = 0, without = 0;
      CHECK(losses(s, true, with) == losses(s, false, without));
      CHECK(with > 0);
      CHECK(without == 0);
    }
  }
}

}  // namespace gpu_graphs_test
