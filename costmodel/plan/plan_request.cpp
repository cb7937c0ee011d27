#include "costmodel/plan/plan_request.hpp"

#include <algorithm>

namespace costmodel {

bool PlanRequest::is_auto(std::string_view key) const {
  return std::ranges::find(automatic, key) != automatic.end();
}

bool PlanRequest::is_written(std::string_view key) const {
  return std::ranges::any_of(written,
                             [key](const Value::Entry& entry) { return entry.key == key; });
}

std::string_view PlanRequest::lists() const {
  if (!stages.empty()) return "stages";
  return replicas.empty() ? "" : "replicas";
}

Mark PlanRequest::mark_of(std::string_view key) const {
  for (const auto& entry : written) {
    if (entry.key == key) return entry.value.mark;
  }
  return mark;
}

}  // namespace costmodel
