// Predictions held against what the runtime takes, operator by operator and stage by stage.
#pragma once

#include <string>
#include <vector>

#include "calibrate/measure/probe_model.hpp"
#include "calibrate/measure/stage_probe.hpp"

namespace calibrate {

struct Compared {
  std::string name;
  costmodel::Seconds predicted, measured;  // of a micro-batch
  double error_pct() const;
};

// Every operator of a model on one device, layers together, in the order of their time; then both
// passes of the stage and the optimizer. At one pace, as calibrations take
// them.
std::vector<Compared> compare_ops(costmodel::Evaluator& evaluator,
                                  const costmodel::ParallelPlan& plan, const StopRule& rule);

// Forward and backward of a stage alone.
std::vector<Compared> compare_stage(const SmallModel& model, const costmodel::DeviceSpec& device,
                                    const StopRule& rule);

std::string table_of(const std::vector<Compared>& rows);

struct ErrorSpread {
  double median = 0, most = 0;  // of absolute errors, per cent
};
ErrorSpread spread_of(const std::vector<Compared>& rows);

}  // namespace calibrate
