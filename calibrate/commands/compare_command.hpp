// `shardplan calibrate --compare` and `--check`: reports that compare predictions with this
// machine, for one model's operators or for models held out of the calibration.
#pragma once

#include <string>
#include <vector>

#include "calibrate/measure/probe_model.hpp"
#include "calibrate/measure/stage_probe.hpp"
#include "costmodel/config/search_path.hpp"

namespace calibrate {

// Compares the scenario's model on one device, in fp32. `profile`: a device's name or file; "": the
// scenario's device. Throws ConfigError.
std::string compare_scenario(const std::string& scenario, const std::string& profile,
                             const costmodel::ConfigPath& path);

// Compares held_out_models(); reports the median and the largest error. Throws ConfigError.
std::string check_profile(const std::string& profile, const costmodel::ConfigPath& path);

// A prediction and the runtime's measured time, of an operator or a stage.
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
