// The JSON of `validate`: rows and summary, --refit, --against-planner.
#pragma once

#include <string>
#include <vector>

#include "planner/accuracy/published_plans.hpp"
#include "planner/accuracy/refit.hpp"
#include "planner/accuracy/validation.hpp"

namespace planner {

std::string validation_json(const std::vector<ValidationRow>& rows,
                            const costmodel::ResidualTable* kept = nullptr);
std::string refit_json(const RefitResult& result);
std::string expert_json(const ExpertComparison& comparison);

}  // namespace planner
