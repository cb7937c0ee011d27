// A layer's forward pass: with a cache, a token at a time, and all tokens at once.
#include "runtime/serving/forward_pass.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "costmodel/serving/served_program.hpp"
#include "runtime/devices/cpu_device.hpp"
#include "runtime/ranks/thread_transport.hpp"
#include "runtime/serving/kv_cache.hpp"
#include "tests/runtime/support/served_runs.hpp"

namespace forward_pass_test {

using namespace runtime;
using costmodel::LayerKind;
using costmodel::ServedShape;

namespace {

// One block of a model, on one rank.
struct OneLayer {
  explicit OneLayer(const char* model)
      : spec(served_runs::request(model, "{tp: 1, pp: 1, dp: 1}").scenario.model),
        world(1, {}),
        tensor(world.of(0), group_of(world.of(0), {0}), traffic),
        pass(device, tensor, 0, arena) {
    spec.dropout = 0;
    const auto list = served_list(LayerKind::block, spec, 1, {}, 4);
    weights.layout = layer_parameters(list, list, spec, {LayerKind::block, 0, 0, false}, false);
    weights.values = arena.take(MemoryKind::weights, weights.layout.size * sizeof(float));
    initialise(weights.layout, 1, weights.values.floats());
    input = arena.take(MemoryKind::buffers, static_cast<std::size_t>(6 * spec.hidden) * 4);
    for (std::size_t i = 0; i < input.floats().size(); ++i)
      input.floats()[i] = static_cast<float>(i % 17) - 8;
  }

  // Rows [first, first + count) of the input.
  std::vector<float> run(KvCache& cache, std::int64_t first, std::int64_t count) {
    const ServedShape shape{1, count};
    const LayerProgram program = layer_program(served_list(LayerKind::block, spec, 1, shape, 4),
                                               costmodel::Recomputed::nothing);
    Place place;
    place.sequence = count;
    place.position = first;
    place.heads = place.all_heads = spec.heads;
    place.kv_heads = spec.kv_heads;
    place.head_dim = spec.head_dim;
    Block x =
        arena.take(MemoryKind::activations, static_cast<std::size_t>(count * spec.hidden) * 4);
    std::copy_n(input.floats().begin() + first * spec.hidden, count * spec.hidden,
                x.floats().begin());
    cache.hold(0, 1, first + count);
    const cpu::CachedKeys keys = cache.of(0, 0, 1, first);
    LayerPass its{program, weights, nullptr, place};
    its.cache = &keys;
    const Block y = pass.run(its, std::move(x));
    return {y.floats().begin(), y.floats().end()};
  }

  KvCache cache() {
    return {{.layers = 1,
             .sequences = 1,
             .tokens = 6,
             .block_size = 4,
             .elements = cpu::block_elements({1, 1, spec.heads, spec.kv_heads, spec.head_dim}, 4)},
            arena};
  }

  costmodel::ModelSpec spec;
  ThreadWorld world;
  TrafficCount traffic;
  Communicator tensor;
  CpuDevice device;
  Arena arena;
  ForwardPass pass;
  LayerWeights weights;
  Block input;
};

}  // namespace

TEST_CASE("a layer computes the same rows one at a time as all at once, and holds none of them") {
  for (const char* model : {served_runs::gpt, served_runs::llama}) {
    OneLayer layer(model);
    KvCache all = layer.cache(), apart = layer.cache();
    const auto whole = layer.run(all, 0, 6);
    const auto h = static_cast<std::size_t>(layer.spec.hidden);
    for (std::int64_t row = 0; row < 6; ++row) {
      const auto one = layer.run(apart, row, 1);
      for (std::size_t i = 0; i < h; ++i) {
        CHECK(one[i] ==
              doctest::Approx(whole[static_cast<std::size_t>(row) * h + i]).epsilon(1e-4));
      }
    }
    CHECK(layer.arena.in_use(MemoryKind::activations) == 0);
    CHECK(layer.arena.peak(MemoryKind::activations) > 0);
    CHECK(layer.traffic.total() == 0);
  }
}

TEST_CASE("the clock runs when it is asked to") {
  OneLayer layer(served_runs::llama);
  KvCache cache = layer.cache();
  layer.run(cache, 0, 6);
  CHECK(layer.pass.operators().value == 0);
  layer.pass.clocked(true);
  layer.run(cache, 0, 6);
  CHECK(layer.pass.operators().value > 0);
  layer.pass.restart_clock();
  CHECK(layer.pass.operators().value == 0);
}

}  // namespace forward_pass_test
