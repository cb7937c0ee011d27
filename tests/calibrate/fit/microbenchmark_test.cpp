#include "calibrate/fit/microbenchmark.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <set>
#include <string>

#include "costmodel/base/error.hpp"
#include "costmodel/config/yaml.hpp"

namespace microbenchmark_test {

using namespace calibrate;

namespace {

Microbenchmarks read(const std::string& text) {
  return read_microbenchmarks(costmodel::parse_yaml(text, "x.yaml"));
}

std::string fault(const std::string& text) {
  try {
    read(text);
  } catch (const costmodel::ConfigError& error) {
    return error.what();
  }
  return "";
}

std::string entry(const std::string& body) {
  return "- {id: a, device: d, source: {title: t}, " + body + "}\n";
}

}  // namespace

TEST_CASE("rates become times") {
  const auto gemm =
      read(entry("kind: gemm, op: matmul, shape: {m: 1000, n: 1000, k: 1000, dtype: "
                 "bf16}, measured: {tflops: 200}"));
  CHECK(gemm.measurements.at(0).time.value == doctest::Approx(1e-5));
  const auto flash =
      read(entry("kind: attention, op: FA2 bwd, shape: {batch: 1, seq: 1000, heads: "
                 "1, head_dim: 100, causal: true, dtype: fp16/bf16}, measured: "
                 "{tflops: 1}"));
  CHECK(flash.measurements.at(0).time.value == doctest::Approx(2.5 * 4 * 1e6 * 100 / 2 * 1e-12));
  const auto ring =
      read(entry("kind: collective, op: all_reduce, shape: {bytes: 8e9, ranks: 8}, "
                 "measured: {busbw_gb_s: 100}"));
  CHECK(ring.measurements.at(0).time.value == doctest::Approx(0.14));
  const auto copy =
      read(entry("kind: copy, op: device-local copy, shape: {bytes: 1e9}, measured: "
                 "{bandwidth_gb_s: 1000}"));
  CHECK(copy.measurements.at(0).time.value == doctest::Approx(2e-3));
}

TEST_CASE("what is not priced is counted with its reason") {
  const auto other =
      read(entry("kind: collective, op: broadcast_all, shape: {ranks: 8}, measured: "
                 "{time_us: 3}"));
  CHECK(other.measurements.empty());
  CHECK(other.unused.at(0).reason == "'broadcast_all' is no collective of ours");
  const auto nvls =
      read(entry("kind: collective, op: all_reduce, system: {algo: NVLS}, shape: "
                 "{bytes: 1, ranks: 8}, measured: {time_us: 3}"));
  CHECK(nvls.unused.size() == 1);
}

TEST_CASE("faults are told with their place") {
  CHECK(fault("a: 1") ==
        "x.yaml:1:1: is not a list of measurements; write a list of {id, device, kind, op, shape, "
        "measured, source}");
  CHECK(fault(entry("kind: gem, op: x, measured: {}")).find("did you mean 'gemm'") !=
        std::string::npos);
  CHECK(fault(entry("kind: copy, op: x, measured: {bandwith_gb_s: 3}"))
            .find("did you mean 'bandwidth_gb_s'") != std::string::npos);
  CHECK(fault(entry("kind: gemm, op: x, shape: {n: 3, k: 3}, measured: {time_us: 1}"))
            .find("lacks the key 'm'") != std::string::npos);
}

TEST_CASE("every shipped file reads, row by row, and every kind that is priced has rows") {
  std::set<std::size_t> priced;
  for (const auto& file :
       std::filesystem::directory_iterator(SHARDPLAN_SOURCE_DIR "/configs/microbench")) {
    CAPTURE(file.path().string());
    const auto list = costmodel::load_yaml(file.path().string());
    const auto found = read_microbenchmarks(list);
    CHECK(found.measurements.size() + found.unused.size() == list.items.size());
    for (const auto& m : found.measurements) {
      priced.insert(m.what.index());
      CHECK_MESSAGE(m.time.value > 0, m.id);
    }
    for (const auto& u : found.unused) CHECK_MESSAGE(!u.reason.empty(), u.id);
  }
  CHECK(priced.size() == std::variant_size_v<decltype(Measurement::what)>);
}

TEST_CASE("a device is measured under names that the shipped files have, each its own") {
  std::set<std::string> known, taken;
  for (const auto& file :
       std::filesystem::directory_iterator(SHARDPLAN_SOURCE_DIR "/configs/microbench"))
    for (const auto& row : costmodel::load_yaml(file.path().string()).items)
      known.insert(row.find("device")->text);
  for (const auto& file :
       std::filesystem::directory_iterator(SHARDPLAN_SOURCE_DIR "/configs/devices")) {
    CAPTURE(file.path().string());
    const auto device = costmodel::load_yaml(file.path().string());
    const auto* names = device.find("measured_as");
    if (names == nullptr) continue;
    for (const auto& name : names->items) {
      CHECK_MESSAGE(known.count(name.text) == 1, name.text);
      CHECK_MESSAGE(taken.insert(name.text).second, name.text);
    }
  }
  CHECK_FALSE(taken.empty());
}

}  // namespace microbenchmark_test
