// Predicted against measured iteration time as one SVG picture, for light and dark pages.
#pragma once

#include <string>
#include <vector>

#include "planner/accuracy/validation.hpp"

namespace planner {

// Text made safe inside XML and HTML.
std::string xml_escaped(const std::string& text);

// Above, both times on logarithmic axes with each prediction's 90 % interval, the line of equality
// and a band of 10 % about it; below, their ratio. A colour and a shape for each framework;
// hovering a point names its run. A picture without points says so.
std::string scatter_svg(const std::vector<ValidationRow>& rows);

}  // namespace planner
