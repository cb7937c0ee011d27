#include "costmodel/plan/plan_request.hpp"

#include <doctest/doctest.h>

#include "costmodel/scenario/plan_reader.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace plan_request_test {

using namespace costmodel;

TEST_CASE("a request knows what is written, what is auto, and where") {
  const PlanRequest plan = read_plan(parse_yaml("tp: 2\npp: auto\n", "plan.yaml"));
  CHECK(plan.is_written("tp"));
  CHECK_FALSE(plan.is_auto("tp"));
  CHECK(plan.is_written("pp"));
  CHECK(plan.is_auto("pp"));
  CHECK_FALSE(plan.pp);
  CHECK_FALSE(plan.is_written("dp"));
  CHECK(plan.mark_of("pp").line == 2);
  CHECK(plan.mark_of("dp").line == plan.mark.line);
}

TEST_CASE("a request names the key that lists sizes for stages or groups") {
  CHECK(read_plan(parse_yaml("tp: 2", "plan.yaml")).lists().empty());
  CHECK(read_plan(parse_yaml("stages: [{dp: 2}, {dp: 2}]", "plan.yaml")).lists() == "stages");
  CHECK(read_plan(parse_yaml("replicas: [{group: a, micro_batches: 2}]", "plan.yaml")).lists() ==
        "replicas");
}

}  // namespace plan_request_test
