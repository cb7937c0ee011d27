// Seconds by kind of kernel: of evidence, and how far predictions are off.
#include "planner/accuracy/kernel_kinds.hpp"

#include <doctest/doctest.h>

#include <string>

#include "costmodel/base/error.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/run_program.hpp"

namespace kernel_kinds_test {

using planner::KindSeconds;
using planner::ValidationRow;

namespace {

ValidationRow row(const char* id, double measured, const KindSeconds& was, const KindSeconds& is) {
  ValidationRow row;
  row.id = id;
  row.quantity = "iteration_s";
  row.measured = measured;
  row.kinds_measured = was;
  row.kinds_predicted = is;
  return row;
}

}  // namespace

TEST_CASE("a kind is compared where it takes a twentieth of the iteration") {
  const std::vector<ValidationRow> rows{row("a", 1, {0.5, 0.049}, {0.6, 0.5}),
                                        row("b", 1, {0.4, 0.05}, {0.39, 0.06})};
  const auto products = planner::kind_error(rows, 0), attention = planner::kind_error(rows, 1);
  CHECK(products.runs == 2);
  CHECK(products.within == 1);
  CHECK(products.mape == doctest::Approx((20 + 2.5) / 2));
  CHECK(products.bias == doctest::Approx((20 - 2.5) / 2));
  CHECK(products.largest_in == "a");
  CHECK(attention.runs == 1);
  CHECK(attention.bias == doctest::Approx(20));
  CHECK(planner::kind_error_table(rows).rows.size() == 2);
  CHECK(planner::kind_run_table(rows).rows.size() == 3);
}

TEST_CASE("evidence has kinds by key; what they leave of the iteration is in no kernel") {
  const program::Scratch folder;
  const auto file = [&](const std::string& kinds) {
    folder.write("runs.yaml",
                 "runs:\n- {id: a, model: gpt2-medium, cluster: {base: dgx-h100, devices: 1}, "
                 "training: {global_batch: 1, sequence: 1024}, plan: {}, "
                 "measured: {iteration_s: 1}, kinds: {" +
                     kinds + "}}\n");
    return (folder.path() / "runs.yaml").string();
  };
  const auto runs = planner::read_evidence_runs({file("products: 0.5, copies: 100 ms")});
  REQUIRE(runs.front().kinds);
  CHECK((*runs.front().kinds)[0] == 0.5);
  CHECK((*runs.front().kinds)[4] == 0.1);
  CHECK(runs.front().kinds->back() == doctest::Approx(0.4));
  CHECK_THROWS_AS(planner::read_evidence_runs({file("products: 0.9, copies: 0.2")}),
                  costmodel::ConfigError);
  CHECK_THROWS_AS(planner::read_evidence_runs({file("product: 0.5")}), costmodel::ConfigError);
}

TEST_CASE("an evidence file names each run once, and each run measured something") {
  const program::Scratch folder;
  const auto fault = [&](const std::string& first, const std::string& second,
                         const std::string& measured) {
    std::string text = "runs:\n";
    for (const std::string& id : {first, second})
      text += "- {id: " + id + ", model: gpt2-medium, measured: {" + measured + "}}\n";
    folder.write("runs.yaml", text);
    try {
      planner::read_evidence_runs({(folder.path() / "runs.yaml").string()});
    } catch (const costmodel::ConfigError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(fault("a", "b", "iteration_s: 1").empty());
  CHECK(fault("a", "b", "fits: false").empty());
  CHECK(fault("a", "a", "iteration_s: 1").find("runs.yaml:3:8: two runs have the id 'a'; give") !=
        std::string::npos);
  CHECK(fault("a", "b", "").find("run a measured nothing; write what was measured: iteration_s") !=
        std::string::npos);
}

// What is known to stay off, and why, stands in docs/kernels.md.
TEST_CASE("kinds of the profiled iterations are within a tenth in the mean, but for the host's") {
  const auto rows = planner::validate(
      {std::string(SHARDPLAN_SOURCE_DIR) + "/configs/evidence/extra/pytorch-h100.yaml"},
      fixtures::configs());
  int compared = 0, within = 0;
  for (std::size_t kind = 0; kind + 1 < planner::kind_keys.size(); ++kind) {
    CAPTURE(planner::kind_name(kind));
    const auto error = planner::kind_error(rows, kind);
    compared += error.runs;
    within += error.within;
    if (error.runs > 1) CHECK(error.mape < 10);
  }
  CHECK(compared > 60);
  CHECK(within >= compared - 8);
}

}  // namespace kernel_kinds_test
