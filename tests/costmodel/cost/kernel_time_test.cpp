// What a framework's own kernels cost: by hand, and against the operators that were measured alone.
#include "costmodel/cost/kernel_time.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "costmodel/config/search_path.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/cost/layer_cost.hpp"
#include "costmodel/machine/device_reader.hpp"
#include "costmodel/plan/kernel_set_reader.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace kernel_time_test {

using namespace costmodel;

namespace {

KernelSet set_of(const char* name) {
  const ResolvedConfig found = resolve_config(fixtures::configs(), "kernels", scalar_value(name));
  return read_kernel_set(found.value, found.name);
}

DeviceSpec device_of(const char* name) {
  const ResolvedConfig found = resolve_config(fixtures::configs(), "devices", scalar_value(name));
  return read_device(found.value, found.name);
}

// A row of configs/kernels/pytorch-operators.csv, by the names of its columns.
using Row = std::map<std::string, std::string>;

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream text(line);
  for (std::string cell; std::getline(text, cell, ',');) cells.push_back(cell);
  return cells;
}

std::vector<Row> measured() {
  std::ifstream file(SHARDPLAN_SOURCE_DIR "/configs/kernels/pytorch-operators.csv");
  std::string line;
  while (std::getline(file, line) && line.starts_with('#')) continue;
  const std::vector<std::string> names = cells_of(line);
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    const std::vector<std::string> cells = cells_of(line);
    Row& row = rows.emplace_back();
    for (std::size_t i = 0; i < cells.size(); ++i) row[names[i]] = cells[i];
  }
  return rows;
}

}  // namespace

TEST_CASE("a kernel's time is its bytes over the rate it reaches, and its starts") {
  KernelSet set;
  set.name = "by hand";
  set.passes[static_cast<std::size_t>(KernelOp::rmsnorm)].forward = KernelPass{2, 1, 0, 0, 3, 0.5};
  DeviceSpec device;
  device.memory_bandwidth = BytesPerSecond(1e12);
  device.memory_efficiency = 0.8;
  device.memory_half = Bytes(8e5);
  const Op norm = Norm{1000, 500, Normalization::rmsnorm};
  const auto time = kernels_of(norm, Pass::forward, set, 2, device);
  REQUIRE(time);
  CHECK(time->moved.value == 1000 * 500 * (2 * 2 + 4));
  CHECK(time->kernels == 3);
  CHECK(time->time.value == doctest::Approx(4e6 / 5e11 + 3 * 8e5 / 8e11));
  CHECK_FALSE(kernels_of(norm, Pass::input_gradient, set, 2, device));  // the file leaves it out
  CHECK_FALSE(
      kernels_of(Op{Norm{1000, 500, Normalization::layernorm}}, Pass::forward, set, 2, device));
  CHECK_FALSE(kernels_around(norm, Pass::forward, set, 2, device));
}

TEST_CASE(
    "source elements have a rate of their own, and small kernels a time whatever the elements") {
  KernelSet set;
  set.name = "by hand";
  KernelPass& pass = set.passes[static_cast<std::size_t>(KernelOp::embedding)].backward.emplace();
  pass = KernelPass{.narrow = 3, .source_narrow = 1, .rate = 0.25};
  pass.source_copies = 1;
  DeviceSpec device;
  device.memory_bandwidth = BytesPerSecond(1e12);
  const auto time = [&] {
    const Op op = Embedding{1000, 500, 4000};
    return kernels_of(op, Pass::input_gradient, set, 2, device).value();
  };
  const double rows = 1000 * 500 * 3 * 2 / 0.25e12, table = 4000 * 500 * 2 / 1e12;
  CHECK(time().time.value == doctest::Approx(rows + 4 * table));
  pass.source_rate = 1;
  CHECK(time().time.value == doctest::Approx(rows + table));
  CHECK(time().copies == doctest::Approx(table / (rows + table)));
  pass.latency = Seconds(7e-5);
  CHECK(time().time.value == doctest::Approx(rows + table + 7e-5));
  CHECK(time().moved.value == 1000 * 500 * 3 * 2 + 4000 * 500 * 2);
}

TEST_CASE("a norm of short heads takes as long as one of as many longer ones") {
  const KernelSet eager = set_of("pytorch-eager");
  const DeviceSpec device = device_of("h100-sxm5-80gb");
  const auto time = [&](std::int64_t rows, std::int64_t cols) {
    const Op norm = Norm{rows, cols, Normalization::rmsnorm, 2};
    return kernels_of(norm, Pass::forward, eager, 2, device)->time.value;
  };
  CHECK(time(1 << 20, 64) == doctest::Approx(time(1 << 20, 128)).epsilon(0.01));
  CHECK(time(1 << 20, 256) > 1.9 * time(1 << 20, 128));
}

TEST_CASE("a norm of long rows takes as many times as long as its file has it") {
  KernelSet set;
  set.name = "by hand";
  set.passes[static_cast<std::size_t>(KernelOp::rmsnorm)].forward =
      KernelPass{.narrow = 2, .rate = 0.5, .long_rows = 1.5};
  DeviceSpec device;
  device.memory_bandwidth = BytesPerSecond(1e12);
  const auto time = [&](std::int64_t rows, std::int64_t cols) {
    const Op norm = Norm{rows, cols, Normalization::rmsnorm};
    return kernels_of(norm, Pass::forward, set, 2, device)->time.value;
  };
  CHECK(time(1000, 8192) == doctest::Approx(1.5 * time(2000, 4096)));
}

TEST_CASE("a kernel is bound by its arithmetic, its bytes or its start") {
  DeviceSpec device;
  device.memory_bandwidth = BytesPerSecond(1e12);
  device.memory_efficiency = 0.8;
  device.memory_half = Bytes(8e5);
  KernelTime kernel{Seconds(1e-5), Bytes(8e6), 1};
  CHECK(bound_of(kernel, device) == KernelBound::memory);
  kernel.kernels = 11;  // 11 us of starts, 10 us of bytes
  CHECK(bound_of(kernel, device) == KernelBound::start);
  kernel.executed = Flops(1e12);
  CHECK(bound_of(kernel, device) == KernelBound::start);  // bytes alone take as long
  kernel.time = Seconds(3e-5);
  CHECK(bound_of(kernel, device) == KernelBound::arithmetic);
}

TEST_CASE("what multiprocessors take of a kernel's time stays where memory is faster") {
  KernelPass pass{.narrow = 2, .rate = 0.5};
  pass.cores = 0.25;
  CHECK(pass.slowed(KernelPass::h100_bandwidth) == 1);
  CHECK(pass.slowed(KernelPass::h100_bandwidth / 2) == 1);
  // Of 4 s a quarter stays and the rest takes half as long, 2.5 s, where bytes alone would take 2.
  CHECK(pass.slowed(2 * KernelPass::h100_bandwidth) == doctest::Approx(2.5 / 2));
}

TEST_CASE("operators of PyTorch alone are priced as well on an H200 as on an H100") {
  const KernelSet eager = set_of("pytorch-eager");
  double sum = 0;
  int count = 0;
  for (const Row& row : measured()) {
    const bool rotary = row.at("operator") == "rope complex";
    if (row.at("device") != "H200" || (!rotary && row.at("operator") != "cross_entropy of float()"))
      continue;
    const auto n = [&](const char* key) { return std::stoll(row.at(key)); };
    const Op op = rotary ? Op{Rotary{n("tokens"), n("hidden")}}
                         : Op{CrossEntropy{n("tokens"), n("vocab"), LossKernel::unfused}};
    const Pass pass = row.at("direction") == "forward" ? Pass::forward : Pass::input_gradient;
    const auto priced = kernels_of(op, pass, eager, 2, device_of("h200-sxm-141gb"));
    sum += std::abs(priced->time.value / (std::stod(row.at("microseconds")) * 1e-6) - 1);
    ++count;
  }
  REQUIRE(count > 10);
  CHECK(sum / count < 0.08);  // 0.16 if all of their time were the memory's
}

TEST_CASE("products of a norm's result cast it each for itself, others' operands are as they are") {
  KernelSet set;
  set.name = "by hand";
  set.passes[static_cast<std::size_t>(KernelOp::linear)].forward = KernelPass{0, 0, 0, 1, 1, 1};
  set.passes[static_cast<std::size_t>(KernelOp::after_norm)].forward = KernelPass{
      .narrow = 1, .wide = 1, .source_wide = 1, .rate = 1, .copies = 0.25, .source_copies = 1};
  DeviceSpec device;
  device.memory_bandwidth = BytesPerSecond(1e12);
  const Op product = Linear{100, 30, 20, false, false};  // m, n, k
  const auto bytes = [&](Site site) {
    return kernels_around(product, Pass::forward, set, 2, device, joined_after_norm(site));
  };
  CHECK(bytes(Site::attention_projection)->moved.value == 30 * 20 * 4);
  CHECK(bytes(Site::logits)->moved.value == 100 * 20 * 6 + 30 * 20 * 4);
  CHECK(bytes(Site::qkv)->moved.value == 3 * 100 * 20 * 6 + 30 * 20 * 4);
  // Of its elements a quarter, of what it reads besides all, is copies.
  CHECK(bytes(Site::qkv)->copies == doctest::Approx(0.25 + 2400.0 / 38400));
}

TEST_CASE("copies of keys and values are priced where heads share them") {
  KernelSet set;
  set.name = "by hand";
  set.passes[static_cast<std::size_t>(KernelOp::repeat_kv)].forward = KernelPass{1, 0, 0, 0, 0, 1};
  DeviceSpec device;
  device.memory_bandwidth = BytesPerSecond(1e12);
  FlashAttention attention{2, 128, 8, 2, 64, true};
  const auto copies = kernels_around(Op{attention}, Pass::forward, set, 2, device);
  REQUIRE(copies);
  CHECK(copies->moved.value == 2 * 128 * 8 * (64 + 64) * 2);
  attention.kv_heads = 8;
  CHECK_FALSE(kernels_around(Op{attention}, Pass::forward, set, 2, device));
}

TEST_CASE("operators of PyTorch alone are priced within a tenth in the mean, by operator") {
  const KernelSet eager = set_of("pytorch-eager");
  const DeviceSpec device = device_of("h100-sxm5-80gb");
  struct Case {
    const char* name;
    std::function<Op(const Row&)> op;
  };
  const auto n = [](const Row& row, const char* key) { return std::stoll(row.at(key)); };
  const std::vector<Case> cases{
      {"rms_norm",
       [&](const Row& r) {
         return Norm{n(r, "tokens"), n(r, "hidden"), Normalization::rmsnorm};
       }},
      {"layer_norm",
       [&](const Row& r) {
         return Norm{n(r, "tokens"), n(r, "hidden"), Normalization::layernorm};
       }},
      {"silu times",
       [&](const Row& r) {
         return Activation{n(r, "tokens"), n(r, "width"), true, true};
       }},
      {"gelu tanh",
       [&](const Row& r) {
         return Activation{n(r, "tokens"), n(r, "width"), false, true};
       }},
      {"rope complex",
       [&](const Row& r) {
         return Rotary{n(r, "tokens"), n(r, "hidden")};
       }},
      {"cross_entropy of float()",
       [&](const Row& r) {
         return CrossEntropy{n(r, "tokens"), n(r, "vocab"), LossKernel::unfused};
       }},
      {"embedding: ids uniform",
       [&](const Row& r) {
         return Embedding{n(r, "tokens"), n(r, "hidden"), n(r, "vocab")};
       }},
      {"gather rows",
       [&](const Row& r) {
         return Permute{n(r, "tokens"), n(r, "hidden"), n(r, "top_k")};
       }},
  };
  const std::vector<Row> rows = measured();
  REQUIRE(rows.size() > 1000);
  for (const Case& of : cases) {
    for (const char* direction : {"forward", "backward"}) {
      double sum = 0;
      int count = 0;
      for (const Row& row : rows) {
        if (row.at("operator") != of.name || row.at("direction") != direction) continue;
        if (!row.at("device").starts_with("H100")) continue;
        const Pass pass =
            std::string(direction) == "forward" ? Pass::forward : Pass::input_gradient;
        const auto priced = kernels_of(of.op(row), pass, eager, 2, device);
        REQUIRE(priced);
        sum += std::abs(priced->time.value / (std::stod(row.at("microseconds")) * 1e-6) - 1);
        ++count;
      }
      CAPTURE(of.name);
      CAPTURE(direction);
      REQUIRE(count > 0);
      CHECK(sum / count < 0.12);
    }
  }
}

TEST_CASE("a device alone has its own rates, one of a node those of a node") {
  ClusterSpec cluster = fixtures::cluster(8);
  cluster.devices_per_node = 8;
  cluster.device = device_of("h100-sxm5-80gb");
  REQUIRE(cluster.device.alone);
  const double of_node = cluster.device.gemm_efficiency;
  const auto efficiency = [&](std::int64_t devices, std::int64_t of_a_node) {
    cluster.devices = devices;
    cluster.devices_per_node = of_a_node;
    set_neighbours(cluster);
    return cluster.device.gemm_efficiency;
  };
  const double alone = of_node * cluster.device.alone->gemm_efficiency;
  CHECK(alone > of_node);
  CHECK(efficiency(8, 8) == of_node);
  CHECK(efficiency(1, 8) == doctest::Approx(alone));
  CHECK(efficiency(1, 8) == doctest::Approx(alone));  // once
  CHECK(efficiency(2, 1) == doctest::Approx(alone));  // two nodes of one
  CHECK(efficiency(2, 2) == doctest::Approx(of_node));
}

}  // namespace kernel_time_test
