#include "planner/batch/json_points_kept.hpp"

#include <doctest/doctest.h>

#include "costmodel/base/input_file.hpp"
#include "tests/run_program.hpp"

namespace json_points_kept_test {

using planner::KeptPoints;
using planner::SweptPoint;
using program::Scratch;

namespace {

SweptPoint point() {
  SweptPoint made{.cells = {"1", "0.1"}, .plan = "t 1", .error = {}, .searched = true};
  made.scales.devices = 8;
  made.scales.tokens_per_s = 1.0 / 3;
  return made;
}

}  // namespace

TEST_CASE("a point is taken up as it was, from a shard's journal too, while its inputs stand") {
  const Scratch scratch;
  const std::string folder = scratch.path() / "points", input = scratch.path() / "in.yaml";
  scratch.write("in.yaml", "a");
  costmodel::read_file(input);
  const SweptPoint made = point();
  KeptPoints(folder, {2, 3}).add({{"k", &made}});
  {
    const KeptPoints all(folder, {});
    REQUIRE(all.find("k") != nullptr);
    CHECK(all.find("k")->cells == made.cells);
    CHECK(all.find("k")->searched);
    CHECK(all.find("k")->scales.tokens_per_s == made.scales.tokens_per_s);
    CHECK(all.find("other") == nullptr);
  }
  CHECK(KeptPoints(folder, {1, 3}).find("k") == nullptr);  // a shard has its own alone
  scratch.write("in.yaml", "b");
  CHECK(KeptPoints(folder, {}).find("k") == nullptr);
}

TEST_CASE("a line cut short and one of another's count for nothing") {
  const Scratch scratch;
  const std::string folder = scratch.path() / "points";
  scratch.write("in.yaml", "a");
  costmodel::read_file(scratch.path() / "in.yaml");
  const SweptPoint made = point();
  KeptPoints(folder, {}).add({{"k", &made}, {"l", &made}});
  const std::string complete = scratch.read("points/journal.jsonl");
  scratch.write("points/journal.jsonl",
                complete.substr(0, complete.find("\"key\":\"l\"")) + "\n{\"key\": 1}\n[]\n");
  const KeptPoints left(folder, {});
  CHECK(left.find("k") != nullptr);
  CHECK(left.find("l") == nullptr);
}

}  // namespace json_points_kept_test
