#include "planner/exchange/exported.hpp"

namespace planner {

void refuse_first(const std::vector<costmodel::Violation>& broken,
                  const costmodel::Scenario& scenario) {
  if (broken.empty()) return;
  costmodel::Mark mark = scenario.plan.mark_of(broken.front().key);
  if (mark.file.empty() || broken.front().key == "model") mark = {scenario.file, 0, 0};
  throw costmodel::ConfigError(mark, broken.front().reason, broken.front().remedy);
}

}  // namespace planner
