// What a measured profile changes of a scenario, and which profiles are refused.
#include "runtime/run/calibrated.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "tests/costmodel/support/fixtures.hpp"
#include "tests/costmodel/support/scenarios.hpp"
#include "tests/run_program.hpp"

namespace calibrated_test {

using costmodel::Precision;
using costmodel::Scenario;
using fixtures::contains;
using runtime::use_calibrated;

namespace {

Scenario scenario(const std::string& training) {
  return scenarios::read(
      "model: gpt2-medium\ncluster: {base: dgx-a100, devices: 8}\n"
      "training: {global_batch: 16, sequence: 1024, " +
      training + "}\nplan: {dp: 8}\n");
}

// A profile of a device that has `precision` alone.
std::string profile_in(const program::Scratch& scratch, const std::string& precision) {
  std::filesystem::copy_file(SHARDPLAN_SOURCE_DIR "/configs/devices/cpu-generic.yaml",
                             scratch.path() / "mine.yaml");
  std::string text = scratch.read("mine.yaml");
  text.replace(text.find("fp32:"), 5, precision + ":");
  scratch.write("mine.yaml", text);
  return (scratch.path() / "mine.yaml").string();
}

}  // namespace

TEST_CASE("a calibrated scenario keeps the overlaps that the runtime has, and loses the others") {
  const program::Scratch scratch;
  const std::string profile = profile_in(scratch, "bf16");
  Scenario s = scenario(
      "stack: megatron-core-2026, overlap: {cuda_graph: true, overlap_grad_reduce: true, "
      "overlap_param_gather: true, tp_comm_overlap: true, async_tp: true, compile: true}");
  use_calibrated(s, profile, fixtures::configs(), Precision::bf16);
  CHECK(s.cluster.device.title == "plain CPU core (AVX2 or AVX-512)");
  const costmodel::Overlap& kept = s.training.overlap;
  CHECK(kept.cuda_graph);
  CHECK(kept.overlap_grad_reduce);
  CHECK(kept.pp_overlap);
  CHECK_FALSE(kept.overlap_param_gather);
  CHECK_FALSE(kept.tp_comm_overlap);
  CHECK_FALSE(kept.async_tp);
  CHECK_FALSE(kept.compile);
  CHECK(s.training.stack.host.kernel_launch == costmodel::Seconds(0));

  Scenario none = scenario("overlap: {cuda_graph: false, overlap_grad_reduce: false}");
  use_calibrated(none, profile, fixtures::configs(), Precision::bf16);
  CHECK_FALSE(none.training.overlap.cuda_graph);
  CHECK_FALSE(none.training.overlap.overlap_grad_reduce);
  CHECK(none.training.overlap.pp_overlap);  // the runtime always sends beside computation
}

TEST_CASE("a profile without the precision that is computed says which it has") {
  const program::Scratch scratch;
  const std::string profile = profile_in(scratch, "bf16");
  for (const Precision missing : {Precision::fp32, Precision::fp16, Precision::fp8}) {
    Scenario s = scenario("precision: bf16");
    const std::string fault =
        fixtures::config_error([&] { use_calibrated(s, profile, fixtures::configs(), missing); });
    CAPTURE(fault);
    CHECK(contains(fault, "--calibrated: device "));
    CHECK(contains(fault, " has no " + std::string(to_string(missing)) + " rate; set "));
    CHECK(contains(fault, "set training.precision to one of bf16, or leave --calibrated out"));
  }
}

}  // namespace calibrated_test
