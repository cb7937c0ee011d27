// What reports say of packed and of padded samples, and what that is held against.
#include "planner/report/packing_report.hpp"

#include <doctest/doctest.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string>

#include "costmodel/estimate/plan_estimate.hpp"
#include "tests/costmodel/support/scenarios.hpp"
#include "tests/golden.hpp"
#include "tests/planner/support/in_process.hpp"

namespace packing_report_test {

using namespace costmodel;

namespace {

nlohmann::json evaluated(const std::string& set) {
  return nlohmann::json::parse(
      in_process::printed("evaluate llama-3-8b-sft-packed --format json" + set));
}

Estimate estimate(const std::string& training, const std::string& plan) {
  const Scenario s = scenarios::read(
      "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 8}\n"
      "training: {precision: bf16, stack: megatron-bridge, " +
      training + "}\nplan: " + plan + "\n");
  return estimate_of(s.model, s.cluster, s.training, resolve_plan(s));
}

}  // namespace

TEST_CASE("packed samples of one length have the FLOPs of sequences of that length") {
  const Estimate packed = estimate(
      "global_batch: 32, sequence: 4096, sample_tokens: 1024, packing: true", "{tp: 1, dp: 8}");
  const Estimate alone = estimate("global_batch: 32, sequence: 4096", "{tp: 1, dp: 8}");
  const Estimate short_ones = estimate("global_batch: 128, sequence: 1024", "{tp: 1, dp: 8}");
  CHECK(packed.model_flops.value == doctest::Approx(short_ones.model_flops.value));
  CHECK(packed.causal_model_flops.value == doctest::Approx(short_ones.causal_model_flops.value));
  CHECK(packed.iteration < alone.iteration);
  CHECK(packed.longest_samples.value == 0);  // all replicas do the same
  CHECK(packed.peak == alone.peak);
}

TEST_CASE("replicas wait for the longest samples, at every layer of ZeRO 3 the most") {
  const std::string lengths =
      "global_batch: 32, sequence: 4096, sample_tokens: {mean: 800, p95: 2400}, packing: true";
  const Estimate one = estimate(lengths, "{tp: 8, dp: 1}");
  CHECK(one.longest_samples.value == 0);
  const Estimate eight = estimate(lengths, "{tp: 1, dp: 8, zero: 1}");
  const Estimate sharded = estimate(lengths, "{tp: 1, dp: 8, zero: 3}");
  CHECK(eight.longest_samples.value > 0);
  // Four sequences a replica: half the deviation of one.
  CHECK(sharded.longest_samples.value == doctest::Approx(2 * eight.longest_samples.value));
  CHECK(eight.breakdown.imbalance >= eight.longest_samples);
  CHECK(eight.breakdown.total().value == doctest::Approx(eight.iteration.value));
}

TEST_CASE("the report of the scenario, and what explain says of its samples") {
  const std::string explained = in_process::printed("explain llama-3-8b-sft-packed");
  const std::size_t from = explained.find("\nSamples\n"), to = explained.find("\nFLOPs\n");
  REQUIRE(from != std::string::npos);
  REQUIRE(to != std::string::npos);
  const std::string text = "$ shardplan evaluate llama-3-8b-sft-packed\n" +
                           in_process::printed("evaluate llama-3-8b-sft-packed") +
                           "\n$ shardplan explain llama-3-8b-sft-packed" +
                           explained.substr(from, to - from) + "\n";
  CHECK(golden::compare("report_packing.txt", text) == "");
}

TEST_CASE("JSON and explain of the scenario, packed and padded") {
  const auto packed = evaluated(""), padded = evaluated(" --set training.packing=false");
  CHECK(packed["packing"]["packed"] == true);
  CHECK(padded["packing"]["samples_per_sequence"] == 1);
  const double gain = packed["packing"]["samples_per_s"].get<double>() /
                      padded["packing"]["samples_per_s"].get<double>();
  // As many times as samples fit in a sequence, and more by what attention saves.
  CHECK(gain > packed["packing"]["samples_per_sequence"].get<double>());
  const std::string explained = in_process::printed("explain llama-3-8b-sft-packed");
  CHECK(explained.find(fmt::format("{:.2f}x  faster than each sample padded", gain)) !=
        std::string::npos);
  const std::string told =
      in_process::printed("evaluate llama-3-8b-sft-packed --set training.packing=false");
  CHECK(told.find(fmt::format("training.packing=true trains {:.3g} times as many", gain)) !=
        std::string::npos);
  CHECK_FALSE(nlohmann::json::parse(in_process::printed("evaluate codeparrot-110m --format json"))
                  .contains("packing"));
}

}  // namespace packing_report_test
