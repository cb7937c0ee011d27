// A job that ran out of memory: which allocation, where, what the ledger of the prediction has
// there, and the smallest changes with which the job fits.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/estimate/peak_place.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/diagnosis/remedies.hpp"
#include "planner/logs/training_log.hpp"

namespace planner {

struct MemoryAnswer {
  OutOfMemory failed;
  int stage = 0;                // the pipeline rank of failed.rank, or else the fullest one
  std::string tensor;           // what an allocation of that size can be; empty: nothing known
  costmodel::PeakPlace place;   // of the predicted peak
  bool predicted_fits = false;  // the prediction is then too low, and so are those of the changes
  double low_by = 1;            // what the device held at least over the predicted peak
  std::vector<Remedy> changes;  // each evaluated: it fits, and with what the prediction is low by
};

MemoryAnswer answer_out_of_memory(const costmodel::Scenario& scenario,
                                  const costmodel::Estimate& estimate, const OutOfMemory& failed,
                                  const OtherStacks& stacks = {},
                                  const std::function<bool()>& stopped = {});

}  // namespace planner
