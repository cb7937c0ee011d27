// What a program that finds the installed package may do with it.
#include <cstdio>

#include "costmodel/costmodel.hpp"
#include "costmodel/estimate/evaluator.hpp"

int main() {
  const auto path = costmodel::config_path({});
  const auto s = costmodel::load_scenario(costmodel::scenario_file("tiny-gpt-cpu", path), path, {});
  const auto plan = costmodel::resolve_plan(s);
  costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
  const auto estimate = evaluator.estimate(plan);
  std::printf("%s: %s\n", to_string(plan).c_str(), format_seconds(estimate.iteration).c_str());
  return estimate.iteration > costmodel::Seconds(0) && estimate.fits() ? 0 : 1;
}
