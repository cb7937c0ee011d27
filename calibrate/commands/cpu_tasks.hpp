// What is measured of this machine: products over a grid, attention over sequences and head sizes,
// everything else inside small models, memory, and messages between threads.
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
  double share = 1;  // of the time, against other tasks
  std::function<std::vector<Record>(const StopRule&)> run;
  bool repeated = false;  // left out when time is up: another round has measured the same
};

// `quick` has fewer shapes and smaller ones. Everything in rounds, so that a time when the machine
// did other things does not spoil one measurement in all its repetitions.
std::vector<Task> cpu_tasks(bool quick, int cores, const Ranks& ranks);

// Every operator of a model that has a curve over bytes, and the optimizer, as one stage's times
// say.
std::vector<Record> probe(const SmallModel& model, const StopRule& rule);

}  // namespace calibrate
