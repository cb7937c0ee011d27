// Compares predictions with the runtime's measured times, per operator and per stage.
#pragma once

#include <string>
#include <vector>

#include "calibrate/measure/probe_model.hpp"
#include "calibrate/measure/stage_probe.hpp"

namespace calibrate {

struct Compared {
  std::string name;
  costmodel::Seconds predicted, measured;  // seconds per micro-batch
  double error_pct() const;
};

// Every operator of a model on one device, summed over its layers, slowest first; then the stage's
// forward, its backward and the optimizer. At the reference pace (measure/pace.hpp).
std::vector<Compared> compare_ops(costmodel::Evaluator& evaluator,
                                  const costmodel::ParallelPlan& plan, const StopRule& rule);

// Forward and backward of a small model's stage only.
std::vector<Compared> compare_stage(const SmallModel& model, const costmodel::DeviceSpec& device,
                                    const StopRule& rule);

std::string table_of(const std::vector<Compared>& rows);

struct ErrorSpread {
  double median = 0, most = 0;  // of absolute errors, in per cent
};
ErrorSpread spread_of(const std::vector<Compared>& rows);

}  // namespace calibrate
