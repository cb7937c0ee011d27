// The shapes of a scenario's operators in a profile: which of them it lacks, and what was measured
// of them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "calibrate/measure/records.hpp"
#include "costmodel/config/value.hpp"
#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/operators/transformer.hpp"

namespace calibrate {

// A pass of a node of a layer.
struct LackingShape {
  costmodel::LayerKind kind;
  std::size_t node = 0;
  costmodel::Op op;
  costmodel::Pass pass = costmodel::Pass::forward;
};

// Whether calibrations measure such operators, and the device's tables have not this shape.
bool lacks_shape(const costmodel::DeviceSpec& device, const costmodel::Op& op, costmodel::Pass pass,
                 costmodel::Precision precision);

// Those of a layer, each shape and pass once, appended to `all`.
void add_lacking(const costmodel::DeviceSpec& device, costmodel::Precision precision,
                 costmodel::LayerKind kind, const costmodel::OpList& list,
                 std::vector<LackingShape>& all);

// "linear m 256, n 512, k 128"
std::string shape_text(const costmodel::Op& op, costmodel::Precision precision);

// A line a shape with its passes, below one with their number.
std::string lacking_text(const std::vector<LackingShape>& lacking, costmodel::Precision precision,
                         const std::string& profile, const std::string& scenario);

// The record of a shape. A product's time is without what the device's tables add for its bias, so
// that both together are what was measured.
Record shape_record(const std::string& task, const costmodel::Op& op, costmodel::Pass pass,
                    const Timing& time, const costmodel::DeviceSpec& device,
                    costmodel::Precision precision);

// Adds the records of shapes to the tables of a device's file by which such operators are priced;
// where there are none, in tables without a grid. Of several records of a shape the median counts.
void add_shapes(costmodel::Value& profile, const std::vector<Record>& records);

}  // namespace calibrate
