// What a program that finds the installed package may do with it.
#include <cstdio>

#include <shardplan/shardplan.hpp>

#include "costmodel/costmodel.hpp"
#include "costmodel/estimate/evaluator.hpp"

int main() {
  const auto path = costmodel::config_path({});
  const auto s = costmodel::load_scenario(costmodel::scenario_file("tiny-gpt-cpu", path), path, {});
  const auto plan = costmodel::resolve_plan(s);
  costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
  const auto estimate = evaluator.estimate(plan);
  std::printf("%s: %s\n", to_string(plan).c_str(), format_seconds(estimate.iteration).c_str());

  const shardplan::Answer found = shardplan::run({"plan", "//mine.yaml", "--format", "json"},
                                                 {{"mine",
                                                   "model: llama-3-8b\n"
                                                   "cluster: {base: dgx-h100, devices: 8}\n"
                                                   "training: {global_batch: 64, sequence: "
                                                   "4096}\n"}});
  const bool planned = found.status == 0 && found.text.find("\"plans\"") != std::string::npos;
  std::printf("%zu bytes of a search\n", found.text.size());
  return estimate.iteration > costmodel::Seconds(0) && estimate.fits() && planned ? 0 : 1;
}
