// The measurement tasks of this machine: products over a grid of shapes, attention over sequence
// lengths and head dimensions, all other operators inside small models, memory bandwidth, and
// messages between ranks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "calibrate/commands/cpu_models.hpp"
#include "calibrate/measure/network_bench.hpp"
#include "calibrate/measure/probe_model.hpp"
#include "calibrate/measure/records.hpp"

namespace calibrate {

struct Task {
  std::string name;
  double share = 1;  // share of the time, relative to other tasks
  std::function<std::vector<Record>(const StopRule&)> run;
  bool repeated = false;  // skipped when time is up, because an earlier round measured the same
};

// `quick` has fewer and smaller shapes. Tasks come in rounds, so that a disturbance of the machine
// does not affect all repetitions of one measurement.
std::vector<Task> cpu_tasks(bool quick, int cores, const Ranks& ranks);

// Measures the optimizer and every operator of a model whose rate is a curve over bytes, inside one
// stage.
std::vector<Record> probe(const SmallModel& model, const StopRule& rule);

}  // namespace calibrate
