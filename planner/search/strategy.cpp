#include "planner/search/strategy.hpp"

namespace planner {

using costmodel::Estimate;

Reach usual_reach(const costmodel::Scenario& scenario) {
  const bool few = scenario.model.layers <= most_cut_layers;
  return few && scenario.training.stack.offers.any_layers() ? Reach::layouts : Reach::even;
}

Strategies run_strategies(const costmodel::Scenario& scenario, Reach reach, int threads,
                          const std::function<bool()>& expired,
                          const std::function<bool()>& interrupted, std::uint64_t effort) {
  const std::function<bool()> stopped = [&] {
    return (expired && expired()) || (interrupted && interrupted());
  };
  Strategies all;
  costmodel::Evaluator evaluator(scenario.model, scenario.cluster, scenario.training);
  all.found = search(scenario, evaluator, interrupted);
  all.even = all.found.plans;
  if (reach == Reach::even || all.found.expired) return all;
  all.layouts = search_layouts(scenario, all.found, threads, stopped, effort);
  all.found.plans = all.layouts->plans;
  all.found.lower_bound = all.layouts->lower_bound;
  all.two_stacks = scenario.model.encoder_decoder();
  if (reach == Reach::layouts) return all;
  if (scenario.cluster.devices <= most_mesh_devices && can_search_meshes(scenario))
    all.meshes = search_meshes(scenario, threads, stopped);
  const bool cut = interrupted && interrupted();
  if (all.found.plans.empty() || all.two_stacks || cut) return all;
  const Estimate& best = all.found.plans.front();
  all.sharding = shard_stage(critical_stage(best, memory_limit(scenario), evaluator), best.plan,
                             evaluator, stopped);
  return all;
}

}  // namespace planner
