// One recipe of a Python file that has several, a function each. Nothing is executed.
#pragma once

#include <string>

namespace planner {

// The lines of `text` that make `recipe`: those of the module, of that function and, before the
// line that calls it, of a function of the file with the call's arguments. Names that stand for a
// literal (parameters with a default, variables) are that literal. Other lines are empty, so that
// places are those of the file where the recipe calls nothing of it. Without a name the only
// function with settings that no other one calls, or the text as it is where there is none;
// `chosen`, where given, gets its name. Throws costmodel::ConfigError where there are several, with
// their names, and for a name that the file has no function of.
std::string python_recipe(const std::string& text, const std::string& file,
                          const std::string& recipe, std::string* chosen = nullptr);

}  // namespace planner
