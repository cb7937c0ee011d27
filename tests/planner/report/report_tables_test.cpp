// The ranking as CSV: each plan key is a column whose cells a scenario takes.
#include "planner/report/report_tables.hpp"

#include <doctest/doctest.h>

#include "costmodel/estimate/plan_estimate.hpp"
#include "costmodel/plan/plan_keys.hpp"
#include "costmodel/scenario/plan_reader.hpp"
#include "tests/costmodel/support/plan_samples.hpp"

namespace report_tables_test {

using namespace costmodel;

TEST_CASE("the columns of plan keys are read as the same plan") {
  for (const auto& sample : plan_samples::all) {
    CAPTURE(sample.key);
    CAPTURE(sample.value);
    const Scenario s = plan_samples::with(sample);
    const ParallelPlan plan = resolve_plan(s);
    const planner::Table table =
        planner::ranking_rows({estimate_of(s.model, s.cluster, s.training, plan)}, {});
    REQUIRE(table.rows.size() == 1);
    REQUIRE(table.rows[0].size() == table.columns.size());
    // Sizes of stages and groups are in their lists; in a column of its own a size is for people.
    const auto own = [&plan](const std::string& key) {
      if (!plan.replica_groups.empty())
        return key == "tp" || key == "pp" || key == "dp" || key == "micro_batch" ||
               key == "recompute" || key == "zero";
      return !plan.stages.empty() &&
             (key == "tp" || key == "dp" || key == "recompute" || key == "zero" ||
              key == "micro_batch" || key == "stage_layers");
    };
    std::string written;
    for (const PlanKey& key : plan_key_rows()) {
      for (std::size_t i = 0; i < table.columns.size(); ++i) {
        const std::string& cell = table.rows[0][i];
        if (table.columns[i].title == key.row.name && !cell.empty() && !own(table.columns[i].title))
          written += table.columns[i].title + ": " + cell + ", ";
      }
    }
    CAPTURE(written);
    Scenario again = s;
    again.plan = read_plan(parse_yaml("{" + written + "}", "again.yaml"));
    CHECK(resolve_plan(again) == plan);
  }
}

}  // namespace report_tables_test
