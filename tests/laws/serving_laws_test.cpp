#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/laws/serving_draws.hpp"

namespace {

std::uint64_t number_of(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

TEST_CASE("Scenarios of serving drawn at random obey the laws") {
  const std::uint64_t first = number_of("SHARDPLAN_LAW_SEED", 1);
  const std::uint64_t draws = number_of("SHARDPLAN_LAW_DRAWS", 2000);
  for (std::uint64_t seed = first; seed < first + draws; ++seed) {
    const std::string yaml = laws::serving_scenario(seed);
    if (!laws::broken_serving_law(yaml)) continue;
    const std::string least = laws::shrunk(yaml);
    FAIL_CHECK("SHARDPLAN_LAW_SEED=" << seed << " SHARDPLAN_LAW_DRAWS=1: "
                                     << *laws::broken_serving_law(least) << "\n"
                                     << least);
  }
}

TEST_CASE("A draw is the same each time, and most are priced") {
  CHECK(laws::serving_scenario(7) == laws::serving_scenario(7));
  int priced = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    try {
      const auto s =
          costmodel::read_serving(costmodel::parse_yaml(laws::serving_scenario(seed), "law.yaml"),
                                  "law", costmodel::config_path({}));
      priced += s.plan.tp || s.plan.disaggregation ? planned_estimate(s).fits : 1;
    } catch (const costmodel::ConfigError&) {
    }
  }
  CHECK(priced >= 40);
}
