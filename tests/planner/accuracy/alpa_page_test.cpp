// docs/alpa.md: Alpa's own experiments next to what the planner finds.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "planner/accuracy/published_plans.hpp"
#include "planner/accuracy/published_plans_report.hpp"
#include "tests/golden.hpp"
#include "tests/sanitized.hpp"

namespace alpa_page_test {

using namespace planner;

namespace {

const std::string source = SHARDPLAN_SOURCE_DIR;
const costmodel::ConfigPath path{{source + "/configs"}};

std::string contents(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

ExpertComparison setting() {
  return compare_with_experts(read_evidence_runs({source + "/configs/evidence/alpa-e2e.yaml"}),
                              path, {!sanitized, 2, {}});
}

}  // namespace

TEST_CASE(
    "in Alpa's setting no plan that was run is predicted faster; docs/alpa.md is as printed") {
  const ExpertComparison c = setting();
  const ComparisonFigures f = figures_of(c);
  CHECK(f.runs == 21);
  CHECK(f.as_fast == f.runs);
  CHECK(worst_loss_pct(c) <= equal_pct);
  CHECK(c.layouts == !sanitized);
  for (const auto& w : c.workloads) {
    CAPTURE(w.model);
    REQUIRE(w.even);
    if (c.layouts) CHECK(w.any->iteration <= w.even->iteration);
  }
  if (sanitized) return;
  const std::string page = expert_report(c, true, {Markup::markdown, {}}) + "\n" +
                           contents(source + "/docs/alpa-setting.md");
  const std::string file = source + "/docs/alpa.md";
  if (std::getenv("SHARDPLAN_UPDATE_GOLDEN") != nullptr) std::ofstream(file) << page;
  CHECK(golden::first_difference(contents(file), page) == "");
}

}  // namespace alpa_page_test
