#include "planner/search/priced_steps.hpp"

namespace planner {

using namespace costmodel;

namespace {

ServingSpec formatted(ServingSpec serving, WeightFormat format) {
  serving.weights = format;
  return serving;
}

}  // namespace

PricedSteps::Entry::Entry(const ServingScenario& s, const ServingSizes& sizes, WeightFormat format)
    : serving(formatted(s.serving, format)), times(s.model, s.cluster, serving, sizes) {}

const StepTimes& PricedSteps::of(const ServingSizes& sizes, WeightFormat format) {
  const int replicas = sizes.spreads_experts() ? sizes.dp : 0;
  const std::tuple key{sizes.tp, sizes.pp, sizes.ep, replicas, format};
  return entries_.try_emplace(key, scenario_, sizes, format).first->second.times;
}

}  // namespace planner
