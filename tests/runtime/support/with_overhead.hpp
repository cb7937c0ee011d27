// The times for predicting a run in real time: each action longer by what waking up takes.
#pragma once

#include "costmodel/schedule/simulator.hpp"

inline costmodel::PipelineTimes with_overhead(costmodel::PipelineTimes times,
                                              costmodel::Seconds overhead) {
  for (auto* list : {&times.forward, &times.backward, &times.weight_gradient})
    for (costmodel::Seconds& duration : *list) duration += overhead;
  return times;
}
