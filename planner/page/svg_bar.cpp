#include "planner/page/svg_bar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "costmodel/base/escape.hpp"

namespace planner {

namespace {

constexpr double width = 1000;  // units of the picture; the page stretches them

// Where `value` lies, inside the picture for any numbers.
double place(double value, double full) {
  if (!(full > 0) || !(value > 0)) return 0;
  return width * std::min(1.0, value / full);
}

std::string opening(const std::string& label) {
  return fmt::format(
      "<svg class=\"bar\" viewBox=\"0 0 {} 10\" preserveAspectRatio=\"none\" role=\"img\" "
      "aria-label=\"{}\">",
      width, costmodel::html_text(label));
}

std::string box(std::string_view colour, double from, double to, std::string_view vertical) {
  return fmt::format("<rect class=\"{}\" x=\"{:.2f}\" width=\"{:.2f}\" {}", colour, from, to - from,
                     vertical);
}

}  // namespace

std::string bar_svg(const std::vector<BarPart>& parts, double full, double limit,
                    const std::string& label) {
  std::string svg = opening(label);
  double sum = 0;
  for (const BarPart& part : parts) {
    if (!(part.size > 0)) continue;
    const double from = place(sum, full), to = place(sum += part.size, full);
    const std::string title = "<title>" + costmodel::html_text(part.hover) + "</title>";
    // A dashed line as wide as the bar is high: upright stripes, however the page stretches them.
    svg += part.hatched ? fmt::format("<path class=\"{} hatched\" d=\"M{:.2f} 5H{:.2f}\">{}</path>",
                                      part.colour, from, to, title)
                        : box(part.colour, from, to, "height=\"10\">") + title + "</rect>";
  }
  if (limit > 0) {
    const double at = place(limit, full);
    svg += fmt::format("<path class=\"limit\" d=\"M{:.2f} 0V10\"/>", at);
  }
  return svg + "</svg>";
}

std::string range_svg(const Range& range, double full, const std::string& label) {
  const double at = place(range.value, full);
  return opening(label) +
         box("span", place(range.low, full), place(range.high, full), "y=\"3\" height=\"4\"/>") +
         box("point", std::max(0.0, at - 7), std::min(width, at + 7), "height=\"10\"/>") + "</svg>";
}

std::string tornado_svg(double down, double up, double full, const std::string& label) {
  constexpr double middle = width / 2;
  const auto half = [&](std::string_view colour, double change, const char* vertical) {
    const double end = middle + (change < 0 ? -0.5 : 0.5) * place(std::abs(change), full);
    return box(colour, std::min(middle, end), std::max(middle, end), vertical);
  };
  return opening(label) + half("backward", down, "height=\"5\"/>") +
         half("forward", up, "y=\"5\" height=\"5\"/>") +
         fmt::format("<path class=\"limit\" d=\"M{} 0V10\"/>", middle) + "</svg>";
}

std::string swatch(std::string_view colour) { return fmt::format("<i class=\"{}\"></i>", colour); }

}  // namespace planner
