// The model and the cluster of any scenario, of training or of serving.
#pragma once

#include "costmodel/config/map_reader.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace costmodel {

// A file with the --set key.path=value options over it. Throws ConfigError.
Value scenario_tree(const std::string& file, const ConfigPath& path,
                    const std::vector<std::string>& assignments);

enum class WorkloadKind { training, inference };

// The workload of a scenario, which is training where none is written. Throws ConfigError for one
// that is neither `inference` nor `training`.
WorkloadKind workload_kind(const Value& root);
inline bool is_serving(const Value& root) { return workload_kind(root) == WorkloadKind::inference; }

// The model that `written` names or holds, with what is written over its base. Throws ConfigError.
ModelSpec find_model(const Value& written, const ConfigPath& path);

// Reads the keys `model` and `cluster`. Throws ConfigError.
void read_parts(MapReader& reader, const ConfigPath& path, Scenario& scenario);

}  // namespace costmodel
