// One operator alone: what it is given, on a device that notes what is done.
#include "calibrate/measure/node_bench.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include "costmodel/cost/measured_time.hpp"
#include "tests/calibrate/support/simulated_gpu.hpp"

namespace node_bench_test {

using calibrate::NodeBench;
using calibrate::RandomBlock;
using costmodel::OpList;
using costmodel::Pass;
using costmodel::Precision;
using costmodel::TensorRole;
using runtime::Number;
using runtime::Place;

namespace {

constexpr std::int64_t rows = 64, cols = 32;

// The branch is the result of the node before; the residual is older.
OpList residual_list() {
  OpList list;
  list.tensors = {
      {"x", rows, cols}, {"branch", rows, cols}, {"residual", rows, cols}, {"sum", rows, cols}};
  list.nodes = {{costmodel::Site::other,
                 costmodel::Norm{rows, cols, costmodel::Normalization::layernorm},
                 {0},
                 1,
                 {0}},
                {costmodel::Site::mlp_residual,
                 costmodel::BiasDropoutAdd{rows, cols, false, false, true},
                 {1, 2},
                 3,
                 {}}};
  return list;
}

OpList embedding_list(std::int64_t vocab) {
  OpList list;
  list.tensors = {{"ids", rows, 1, 8, TensorRole::statistics}, {"x", rows, cols}};
  list.nodes = {
      {costmodel::Site::token_embedding, costmodel::Embedding{rows, cols, vocab}, {0}, 1, {0}}};
  return list;
}

std::vector<std::int64_t> ids_in(const std::vector<std::byte>& bytes) {
  std::vector<std::int64_t> ids(bytes.size() / sizeof(std::int64_t));
  std::memcpy(ids.data(), bytes.data(), bytes.size());
  return ids;
}

struct Simulated {
  simulated_gpu::Clock clock;
  simulated_gpu::Device device{clock};
  RandomBlock block{device.memory(), 1'000'000};
};

}  // namespace

TEST_CASE("the operator before writes what it would have, and no more") {
  Simulated gpu;
  const OpList list = residual_list();
  const Place place;
  NodeBench bench(gpu.device, gpu.block, Number::bf16, list, 1, {}, place);
  gpu.clock.noting = true;
  const auto& copies = gpu.device.memory().copies;
  bench.write_predecessor(Pass::forward);
  bench.run(Pass::forward);
  REQUIRE(copies.size() == 1);  // the residual stays where it was
  CHECK(copies[0].to == gpu.device.inputs[0].data);
  CHECK(copies[0].bytes == 2 * rows * cols);
  bench.write_predecessor(Pass::input_gradient);
  bench.run(Pass::input_gradient);
  REQUIRE(copies.size() == 2);
  CHECK(copies[1].to == gpu.device.output_gradient.data);
  CHECK(copies[1].bytes == 2 * rows * cols);
}

TEST_CASE("what an operator alone reads was written before it") {
  Simulated gpu;
  const OpList list = calibrate::product_list(8, 16, 32, 2);
  const Place place;
  NodeBench bench(gpu.device, gpu.block, Number::bf16, list, 0, {.matrix = 16 * 32}, place);
  gpu.clock.noting = true;
  bench.write_predecessor(Pass::forward);
  REQUIRE(gpu.device.memory().copies.size() == 1);
  CHECK(gpu.device.memory().copies[0].bytes == 2 * 8 * 32);
  bench.write_predecessor(Pass::weight_gradient);
  CHECK(gpu.device.memory().copies[1].bytes == 2 * 8 * 16);
}

TEST_CASE("tensors are filled by the device; ids are of the whole vocabulary") {
  Simulated gpu;
  const std::int64_t vocab = 50'000;
  const OpList list = embedding_list(vocab);
  const Place place{.sequences = 1, .sequence = rows, .vocab = vocab};
  const OpList before = residual_list();
  NodeBench(gpu.device, gpu.block, Number::bf16, before, 0, {}, place);  // the block in bf16
  const std::size_t held = gpu.device.memory().held, from_host = gpu.device.memory().written.size();
  CHECK(from_host == 1);
  {
    NodeBench bench(gpu.device, gpu.block, Number::bf16, list, 0, {.matrix = vocab * cols}, place);
    REQUIRE(gpu.device.memory().written.size() == from_host + 1);
    const auto ids = ids_in(gpu.device.memory().written.back());
    REQUIRE(ids.size() == rows);
    const auto [least, most] = std::ranges::minmax(ids);
    CHECK(least >= 0);
    CHECK(least < vocab / 8);
    CHECK(most < vocab);
    CHECK(most > vocab - vocab / 8);
    CHECK(std::set(ids.begin(), ids.end()).size() > rows / 2);
  }
  CHECK(gpu.device.memory().held == held);
}

TEST_CASE("an embedding's rate is one over its result, whatever the vocabulary") {
  const auto work = [](std::int64_t vocab, Pass pass) {
    return costmodel::measured_work(costmodel::Embedding{rows, cols, vocab}, pass, Precision::bf16);
  };
  for (const Pass pass : {Pass::forward, Pass::input_gradient}) {
    CHECK(work(1000, pass).point == std::vector{2.0 * rows * cols});
    CHECK(work(1000, pass).point == work(50'000, pass).point);
  }
}

}  // namespace node_bench_test
