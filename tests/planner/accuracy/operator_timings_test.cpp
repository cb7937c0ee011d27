// Operators timed one by one: the shipped table, its groups by hand, and what is no table.
#include "planner/accuracy/operator_timings.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "costmodel/base/error.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/run_program.hpp"

namespace operator_timings_test {

using planner::OperatorGroup;
using planner::OperatorTiming;

namespace {

const char* const device = "h100-sxm5-80gb";

std::vector<OperatorTiming> timings_of(const std::string& text) {
  const program::Scratch scratch;
  scratch.write("table.csv", text);
  return planner::operator_timings((scratch.path() / "table.csv").string(), device,
                                   fixtures::configs());
}

}  // namespace

TEST_CASE("a group's errors are of its operator in one direction, and of rows with a price") {
  const std::vector<OperatorTiming> timings{
      {"a", "forward", "", costmodel::Seconds(1), costmodel::Seconds(1.1)},
      {"a", "forward", "", costmodel::Seconds(2), costmodel::Seconds(1.4)},
      {"a", "backward", "", costmodel::Seconds(1), costmodel::Seconds(1)},
      {"b", "", "", costmodel::Seconds(1), costmodel::Seconds(0)}};
  const std::vector<OperatorGroup> groups = planner::operator_groups(timings);
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].rows == 2);
  CHECK(groups[0].mean == doctest::Approx(20));
  CHECK(groups[0].bias == doctest::Approx(-10));
  CHECK(groups[0].largest == doctest::Approx(-30));
  CHECK(groups[1].direction == "backward");
  CHECK(planner::operator_table(groups).rows.size() == 2);
  CHECK(planner::operator_table(timings).rows.size() == 3);
}

TEST_CASE("a table has its own names of columns and of operators") {
  const auto timings = timings_of(
      "op,direction,seconds,m,k,n,parameters,tensors\n"
      "\"fp8 product, scale a tensor\",,1e-3,8192,4096,14336,,\n"
      "product forward,,2e-3,8192,4096,14336,,\n"
      "adamw fused fp32,,5e-3,,,,1000000000,7\n"
      "clip_grad_norm foreach,,2e-3,,,,1000000000,7\n"
      "something else,,1e-3,,,,,\n"
      "product forward,,not timed,8192,4096,14336,,\n");
  REQUIRE(timings.size() == 5);
  CHECK(timings[0].priced.value > 0);
  CHECK(timings[0].priced < timings[1].priced);
  CHECK(timings[0].sizes == "k 4096 m 8192 n 14336");
  CHECK(timings[2].name == "adamw fused fp32 and clip_grad_norm foreach");
  CHECK(timings[2].measured.value == doctest::Approx(7e-3));
  CHECK(timings[3].priced.value == 0);
  CHECK(timings[4].priced.value == 0);
  // Ten times as many as bytes allow would be no price.
  const auto other = timings_of(
      "# a comment\ndevice,operator,microseconds,tokens,hidden\n"
      "H200,rms_norm,50,8192,4096\nH100 80GB,rms_norm: again,50,8192,4096\n"
      "H100 80GB,rms_norm,50,8192,4096\n");
  REQUIRE(other.size() == 2);
  CHECK(other[0].priced.value == 0);
  CHECK(other[1].priced.value > 2.0 * 2 * 8192 * 4096 / 3.4e12);
}

TEST_CASE("what is no table of operators is refused with its place") {
  CHECK_THROWS_WITH_AS(timings_of("a,b\n1,2\n"), doctest::Contains("is no table of operators"),
                       costmodel::ConfigError);
  CHECK(timings_of("op,seconds\n").empty());
}

TEST_CASE("shipped timings of an H100: most operators are priced within a tenth") {
  const auto timings = planner::operator_timings(
      SHARDPLAN_SOURCE_DIR "/configs/kernels/pytorch-operators.csv", device, fixtures::configs());
  const auto groups = planner::operator_groups(timings);
  REQUIRE(groups.size() > 30);
  const auto near = std::ranges::count_if(groups, [](const auto& g) { return g.mean < 10; });
  CHECK(near * 3 > static_cast<std::ptrdiff_t>(groups.size()) * 2);
  for (const char* name : {"silu times", "gelu tanh", "product forward", "attention flash2"}) {
    const auto group = std::ranges::find(groups, name, &OperatorGroup::name);
    REQUIRE(group != groups.end());
    CHECK_MESSAGE(group->mean < 7, name);
  }
  for (const char* name : {"grouped product", "gather rows", "fp8 product, scale a tensor, fast"}) {
    for (const OperatorGroup& group : groups)
      if (group.name == name) CHECK_MESSAGE(group.mean < 7, name);
  }
}

TEST_CASE("grouped products of an H200 are priced as well as those of an H100") {
  const auto timings =
      planner::operator_timings(SHARDPLAN_SOURCE_DIR "/configs/kernels/pytorch-operators.csv",
                                "h200-sxm-141gb", fixtures::configs());
  int held = 0;
  for (const OperatorGroup& group : planner::operator_groups(timings)) {
    if (group.name != "grouped product") continue;
    CHECK(group.mean < 7);
    ++held;
  }
  CHECK(held == 2);
}

}  // namespace operator_timings_test
