// Laws of serving, over scenarios drawn at random.
#include <doctest/doctest.h>

#include "tests/laws/law_draws.hpp"
#include "tests/laws/serving_draws.hpp"

TEST_CASE("scenarios of serving drawn at random obey the laws") {
  laws::hold(2000, 35, laws::serving_scenario, laws::broken_serving_law);
}

TEST_CASE("a draw is the same each time, and most are priced") {
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
