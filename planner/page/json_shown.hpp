// Which values of a report its page shows, so that the end of the page can have all the others.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace planner {

// While it lives, its thread makes a page of `report`: figure() and words() note what they show, by
// the place of the value in memory, and each figure carries its JSON pointer. It is not handed from
// section to section, as every function that prints a value would have to take it.
class ShownValues {
 public:
  explicit ShownValues(const nlohmann::ordered_json& report);
  ~ShownValues();
  ShownValues(const ShownValues&) = delete;
  ShownValues& operator=(const ShownValues&) = delete;
};

// Notes that the page shows the value, or all that is in it.
void note_shown(const nlohmann::ordered_json& value);
// Whether the page shows all of it. A null and what is empty need not be shown.
bool is_shown(const nlohmann::ordered_json& value);
// The value's JSON pointer (RFC 6901): "/plans/0/time/iteration_s"; "" for what is not of a report.
std::string pointer_of(const nlohmann::ordered_json& value);

}  // namespace planner
