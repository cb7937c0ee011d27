#include "planner/page/memory_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "planner/page/svg_bar.hpp"
#include "planner/report/memory_report.hpp"

namespace planner {

using namespace costmodel;

namespace {

constexpr double wide_units = 1e4,
                 high_units = 1e3;  // units of the picture, which the page stretches

std::string hover_of(const MemorySample& own) {
  std::string text = fmt::format("{}{}: {}", pass_text(own),
                                 own.op.empty() ? std::string() : fmt::format(", {}", own.op),
                                 format_bytes(own.allocated));
  for (std::size_t kind = 0; kind < own.held.size(); ++kind) {
    if (own.held[kind] > Bytes(0))
      text += fmt::format(", {} {}", memory_kind_names[kind], format_bytes(own.held[kind]));
  }
  return text + fmt::format("; reserved {}", format_bytes(own.reserved));
}

// A column: as wide as its pass takes, at least a stroke.
std::string column(const MemorySample& own, double x, double wide, double unit) {
  std::string svg = "<g>";
  double below = 0;
  for (std::size_t kind = 0; kind < own.held.size(); ++kind) {
    const double high = own.held[kind].value * unit;
    if (high <= 0) continue;
    below += high;
    svg += fmt::format(
        "<rect class=\"{}\" x=\"{:.0f}\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.1f}\"/>",
        memory_kind_names[kind], x, high_units - below, wide, high);
  }
  return svg + "<title>" + html_text(hover_of(own)) + "</title></g>";
}

}  // namespace

std::string memory_html(const MemoryTrace& trace, Bytes capacity) {
  if (!trace.known()) return "";
  const double full = 1.05 * max(capacity, trace.allocated).value, unit = high_units / full;
  const Seconds end = trace.samples.back().end;
  const std::size_t together = 1 + trace.samples.size() / most_drawn_samples;
  std::string svg = fmt::format(
      "<svg class=\"bar\" style=\"height:180px\" viewBox=\"0 0 {:.0f} {:.0f}\" "
      "preserveAspectRatio=\"none\" role=\"img\" aria-label=\"memory over the iteration, at most "
      "{}\">",
      wide_units, high_units, html_text(format_bytes(trace.allocated)));
  for (std::size_t i = 0; i < trace.samples.size(); i += together) {
    const std::size_t after = std::min(i + together, trace.samples.size());
    std::size_t fullest = i;
    for (std::size_t s = i; s < after; ++s)
      if (trace.samples[s].allocated > trace.samples[fullest].allocated) fullest = s;
    const double from = end.value > 0 ? trace.samples[i].begin / end : 0,
                 to = end.value > 0 ? trace.samples[after - 1].end / end : 1;
    svg += column(trace.samples[fullest], wide_units * from,
                  std::max(wide_units * (to - from), 8.0), unit);
  }
  const double line = high_units - capacity.value * unit;
  svg += fmt::format(
      "<line class=\"limit\" x1=\"0\" x2=\"{:.0f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/></svg>",
      wide_units, line, line);
  std::string legend;
  for (const std::string_view kind : memory_kind_names)
    legend += swatch(kind) + std::string(kind) + " ";
  const MemorySample& peak = trace.samples[trace.peak];
  return svg + "<p class=\"note\">" + legend + "line: what the device has. " +
         html_text(fmt::format("The peak is {} in the {}{}; the allocator reserves {}.",
                               format_bytes(peak.allocated), pass_text(peak),
                               peak.op.empty() ? std::string() : fmt::format(", at {}", peak.op),
                               format_bytes(trace.reserved))) +
         "</p>\n";
}

}  // namespace planner
