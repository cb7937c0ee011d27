// The settings of a configuration of torchtitan. Names of 2024 and 2025 ([training] batch_size,
// [float8]) are those of today.
#pragma once

#include <vector>

#include "planner/frameworks/setting_fields.hpp"

namespace planner {

class TorchtitanFields : public SettingFields {
 public:
  explicit TorchtitanFields(std::vector<SetField> fields);
};

}  // namespace planner
