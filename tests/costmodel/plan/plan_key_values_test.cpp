#include "costmodel/plan/plan_key_values.hpp"

#include <doctest/doctest.h>

#include <string>

#include "costmodel/scenario/plan_reader.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace plan_key_values_test {

using namespace costmodel;

TEST_CASE("layers of stages in short") {
  const auto layers = [](const std::string& text) {
    return read_plan(parse_yaml("{pp: 4, stage_layers: " + text + "}", "plan.yaml")).stage_layers;
  };
  CHECK(layers("18+21x2+20") == std::vector<int>{18, 21, 21, 20});
  CHECK(layers("8x4") == std::vector<int>{8, 8, 8, 8});
  CHECK(layers("0+32") == std::vector<int>{0, 32});
  for (const char* wrong : {"8x", "x4", "8+", "8++8", "a", "8x0", "-8+8", "8x200000", "8 + 8",
                            "99999999999", "{a: 1}"}) {
    CAPTURE(wrong);
    CHECK(fixtures::contains(fixtures::config_error([&] { layers(wrong); }),
                             "stage_layers is not a list"));
  }
}

TEST_CASE("what backward computes again is written as it is read") {
  for (const char* text : {"none", "selective", "full", "{granularity: full, layers: 3}",
                           "{modules: [mla_up_proj, moe]}"}) {
    CAPTURE(text);
    const Recompute recompute = read_recompute(parse_yaml(text, "plan.yaml"));
    CHECK(read_recompute(recompute_value(recompute)) == recompute);
  }
  CHECK(read_recompute(parse_yaml("{granularity: full, layers: 3}", "t")).layers == 3);
}

}  // namespace plan_key_values_test
