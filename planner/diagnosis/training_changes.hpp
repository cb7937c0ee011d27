// Changes of what is trained and how, with which it takes fewer bytes.
#pragma once

#include "costmodel/scenario/scenario.hpp"
#include "planner/diagnosis/attempts.hpp"

namespace planner {

// Tries each of them alone: sizes of experts, recomputation, the loss, precision and place of
// states and activations, adapters, another stack or optimizer.
void change_training(const costmodel::Scenario& scenario, Attempts& attempts);

}  // namespace planner
