// What tensor parallelism brings a replica, in numbers and in words.
#pragma once

#include <string>
#include <vector>

#include "costmodel/serving/serving_estimate.hpp"

namespace planner {

struct TensorRung {
  int tp = 1, pp = 1;
  bool fits = false;
  costmodel::Seconds weights, all_reduce, collectives, token;  // of a decode step; one all-reduce
  double all_reduces = 0;                                      // of a step
  double running = 0;       // requests that run: with more devices the cache has room for more
  double output_per_s = 0;  // of one replica that has `in_flight` requests in flight
  double per_device() const { return output_per_s / (tp * pp); }
};

// tp 1, 2, 4, ... up to the devices of a node, of replicas of `pp` stages with `in_flight` requests
// in each.
std::vector<TensorRung> tensor_ladder(const costmodel::ServingScenario& scenario, int pp,
                                      double in_flight);

// For each doubling of tp: what reading the weights saves, what all-reduces cost, what is left.
std::vector<std::string> tensor_sentences(const costmodel::ServingScenario& scenario,
                                          const std::vector<TensorRung>& ladder);

}  // namespace planner
