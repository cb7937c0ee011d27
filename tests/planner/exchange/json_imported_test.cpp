// An imported job as JSON.
#include "planner/exchange/json_imported.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "planner/frameworks/import_megatron.hpp"
#include "planner/frameworks/megatron_script.hpp"
#include "tests/planner/support/megatron_runs.hpp"

namespace json_imported_test {

TEST_CASE("numbers, switches and text; what is missing by its key") {
  const auto json = nlohmann::json::parse(planner::to_json(
      planner::import_megatron(planner::read_megatron_script(megatron_runs::script, "x.sh"))));
  CHECK(json["format"] == "megatron");
  CHECK(json["scenario"]["plan"]["tp"] == 8);
  CHECK(json["scenario"]["plan"]["sequence_parallel"] == true);
  CHECK(json["scenario"]["model"]["dropout"] == 0.1);
  CHECK(json["scenario"]["training"]["precision"] == "bf16");
  CHECK(json["missing"].contains("cluster.base"));
  CHECK(json["left_out"].size() == 2);
}

}  // namespace json_imported_test
