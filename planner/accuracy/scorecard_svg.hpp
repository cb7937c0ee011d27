// Predicted against measured iteration time as an SVG image for light and dark pages.
#pragma once

#include <string>
#include <vector>

#include "planner/accuracy/validation.hpp"

namespace planner {

// Top: both times on logarithmic axes, with each prediction's 90 % interval, the line of equality
// and a band of 10 % around it. Bottom: their ratio. Each framework has a colour and a shape;
// hovering over a point shows its run. An image without points says so.
std::string scatter_svg(const std::vector<ValidationRow>& rows);

}  // namespace planner
