// One recipe of a Python file that has several, a function each. Nothing is executed.
#pragma once

#include <string>

namespace planner {

// The lines of `text` that make `recipe`: those of the module, of that function and, before it, of
// the functions of the file that it calls; parameters with a default stand as their defaults. Other
// lines are empty, so that the places of the rest are those of the file, but where a function is
// written after the one that calls it. Without a name the only function with settings that no other
// one calls, or the text as it is where there is none. Throws costmodel::ConfigError where there
// are several, with their names, and for a name that the file has no function of.
std::string python_recipe(const std::string& text, const std::string& file,
                          const std::string& recipe);

}  // namespace planner
