// Step times of the sizes and formats that a search meets, each made once: limits of the batch and,
// but where experts are spread over them, the number of replicas do not enter them.
#pragma once

#include <map>
#include <tuple>

#include "costmodel/serving/step_time.hpp"

namespace planner {

class PricedSteps {
 public:
  // The scenario must outlive this.
  explicit PricedSteps(const costmodel::ServingScenario& scenario) : scenario_(scenario) {}

  const costmodel::StepTimes& of(const costmodel::ServingSizes& sizes,
                                 costmodel::WeightFormat format);

 private:
  struct Entry {
    costmodel::ServingSpec serving;
    costmodel::StepTimes times;
    Entry(const costmodel::ServingScenario& s, const costmodel::ServingSizes& sizes,
          costmodel::WeightFormat format);
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
  };
  const costmodel::ServingScenario& scenario_;
  std::map<std::tuple<int, int, int, int, costmodel::WeightFormat>, Entry> entries_;
};

}  // namespace planner
