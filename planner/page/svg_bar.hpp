// Bars as SVG that stretches to the width it is given: it holds no text, so that nothing is
// distorted. Colours are classes of page_style.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace planner {

struct BarPart {
  std::string_view colour;  // a class: "compute", "weights"
  double size = 0;          // of any unit, at least 0
  std::string hover;        // text
  bool hatched = false;     // instead of solid
};

// The parts side by side; `full` is what the whole width stands for. `limit`: a line there, none at
// 0. `label` is read out instead of the picture.
std::string bar_svg(const std::vector<BarPart>& parts, double full, double limit,
                    const std::string& label);

struct Range {
  double low = 0, value = 0, high = 0;
};

// An interval with its value, on an axis from 0 to `full`.
std::string range_svg(const Range& range, double full, const std::string& label);

// What two moves of a number do, relatively: downwards (the upper half) and upwards, from the
// middle to either side; `full` is what half of the width stands for.
std::string tornado_svg(double down, double up, double full, const std::string& label);

// The square of a colour, for tables and legends.
std::string swatch(std::string_view colour);

}  // namespace planner
