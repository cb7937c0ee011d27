#include "costmodel/scenario/scenario_parts.hpp"

#include <doctest/doctest.h>

#include "costmodel/config/yaml.hpp"

using namespace costmodel;

TEST_CASE("Model and cluster of a scenario are read alone, and other keys are left") {
  const Value root =
      parse_yaml("{model: gpt2, cluster: {base: dgx-h100, devices: 8}, else: 1}", "parts.yaml");
  MapReader reader(root, "scenario");
  Scenario parts;
  read_parts(reader, config_path({}), parts);
  CHECK(parts.model_text == "gpt2");
  CHECK(parts.cluster.devices == 8);
  CHECK_THROWS_WITH_AS(reader.finish(), doctest::Contains("else"), ConfigError);
}
