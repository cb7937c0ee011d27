// Arguments looked up, and values that are none refused at their place.
#include "planner/frameworks/import_megatron.hpp"

#include <doctest/doctest.h>

#include "planner/frameworks/megatron_script.hpp"

namespace megatron_import_test {

TEST_CASE("a value of another type, or one that the script does not say, is refused") {
  const auto run = planner::read_megatron_script(
      "--num-layers many --seed\n--hidden-size $H --lr 0.5 --spec a", "x.sh");
  planner::MegatronImport in(run);
  CHECK_THROWS_WITH(in.whole("--num-layers", 0),
                    doctest::Contains("x.sh:1:1: --num-layers 'many' is no number"));
  CHECK_THROWS_WITH(in.text("--seed"), doctest::Contains("--seed has no value"));
  CHECK_THROWS_WITH(in.whole("--hidden-size", 0), doctest::Contains("the script does not say $H"));
  CHECK_THROWS_WITH(in.whole("--lr", 0), doctest::Contains("is no whole number"));
  CHECK(in.whole("--vocab-size", 7) == 7);
  in.list_others();
  REQUIRE(in.job.left_out.size() == 1);
  CHECK(in.job.left_out.front() == "--spec a: no key says it");
}

TEST_CASE("a plain key that the script does not say is missing") {
  const auto run = planner::read_megatron_script("--num-layers $L --hidden-size 64", "x.sh");
  planner::MegatronImport in(run);
  in.copy_all("model.", planner::WordOf::any_job);
  REQUIRE(in.job.missing.size() == 1);
  CHECK(in.job.missing.front().key == "model.layers");
  CHECK(in.job.scenario.find("model")->find("layers")->text == "REPLACE");
  CHECK(in.job.scenario.find("model")->find("hidden")->text == "64");
}

}  // namespace megatron_import_test
