#include "planner/accuracy/scorecard_svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "costmodel/base/escape.hpp"
#include "planner/accuracy/scorecard.hpp"

namespace planner {

namespace {

constexpr double width = 1060, height = 930;
constexpr double left_edge = 76, right_edge = 716;     // both panels
constexpr double top = 84, bottom = 620;               // times
constexpr double ratio_top = 648, ratio_bottom = 862;  // their ratio
constexpr double legend_left = 744, legend_right = 1036;
constexpr double legend_runs = 956;    // right edge of the numbers of runs
constexpr double largest_ratio = 2.5;  // ratios beyond are drawn at the edge

// Eight hues that most people can distinguish on white and on black; a second shape for the next
// eight.
constexpr std::array<std::string_view, 8> light{"#2a6fdb", "#d9730d", "#178a5b", "#c4307e",
                                                "#7a4fd0", "#a8790a", "#0d8a9e", "#d1383d"};
constexpr std::array<std::string_view, 8> dark{"#6ea8ff", "#ff9d4d", "#4cc38a", "#ff7ab8",
                                               "#ab8cff", "#e0b93a", "#45c7dc", "#ff7b7b"};

struct Scale {
  double low = 0, high = 1;  // log10
  double from = 0, to = 1;   // pixels
  double at(double value) const {
    return from + (std::log10(value) - low) / (high - low) * (to - from);
  }
};

// Margin around the values, so that no point is on the frame.
Scale time_scale(const std::vector<const ValidationRow*>& rows, double from, double to) {
  double low = 1e300, high = 1e-300;
  for (const auto* row : rows) {
    low = std::min({low, row->measured, row->predicted});
    high = std::max({high, row->measured, row->predicted});
  }
  return {std::log10(low) - 0.12, std::log10(high) + 0.12, from, to};
}

struct Framework {
  std::string name;
  ErrorFigures figures;
};

// Sorted by number of runs, descending: they get the first colours and are drawn first, below the
// others.
std::vector<Framework> frameworks_of(const FiguresByName& by_framework) {
  std::vector<Framework> list;
  for (const auto& [name, figures] : by_framework) list.push_back({name, figures});
  std::ranges::stable_sort(
      list, [](const auto& a, const auto& b) { return a.figures.rows > b.figures.rows; });
  return list;
}

std::string marker(std::size_t index, double x, double y) {
  if (index / light.size() % 2 == 0)
    return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"/>", x, y);
  return fmt::format("<path d=\"M{:.1f} {:.1f}l4 4-4 4-4-4z\"/>", x, y - 4);
}

std::string text(double x, double y, std::string_view classes, const std::string& words) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", x, y, classes,
                     costmodel::html_text(words));
}

std::string line(double x1, double y1, double x2, double y2, std::string_view classes) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2,
      y2, classes);
}

std::string style_sheet() {
  std::string css =
      ".scatter{--ink:#1c2024;--dim:#60646c;--grid:#e4e7eb;--frame:#b9bec6;--paper:#fff;"
      "--band:#2a6fdb1f;font:13px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',"
      "sans-serif}\n";
  const auto colours = [](const auto& palette) {
    std::string list;
    for (std::size_t i = 0; i < palette.size(); ++i)
      list += fmt::format(";--c{}:{}", i, palette[i]);
    return list.substr(1);
  };
  css += ".scatter{" + colours(light) + "}\n";
  css +=
      "@media(prefers-color-scheme:dark){.scatter{--ink:#edeef0;--dim:#a0a6b0;--grid:#2b3036;"
      "--frame:#565c66;--paper:#16181c;--band:#6ea8ff2b;" +
      colours(dark) + "}}\n";
  for (std::size_t i = 0; i < light.size(); ++i)
    css += fmt::format(".scatter .k{0}{{fill:var(--c{0});stroke:var(--c{0})}}\n", i);
  css +=
      ".scatter .paper{fill:var(--paper)}.scatter text{fill:var(--ink)}\n"
      ".scatter .title{font-size:19px;font-weight:650}.scatter .dim{fill:var(--dim)}\n"
      ".scatter .end{text-anchor:end}.scatter .mid{text-anchor:middle}\n"
      ".scatter .num{font-variant-numeric:tabular-nums}.scatter .head{font-size:11px}\n"
      ".scatter .grid{stroke:var(--grid)}.scatter .frame{fill:none;stroke:var(--frame)}\n"
      ".scatter .equal{stroke:var(--ink);stroke-width:1.2}.scatter .band{fill:var(--band)}\n"
      ".scatter .runs path.bar{fill:none;stroke-width:1;stroke-opacity:.3}\n"
      ".scatter .runs circle,.scatter .runs path{fill-opacity:.72;stroke:var(--paper);"
      "stroke-width:.5}\n"
      ".scatter .runs path.bar{stroke:inherit}\n"
      ".scatter .runs g:hover path.bar{stroke-opacity:1;stroke-width:2}\n"
      ".scatter .runs g:hover :not(.bar){fill-opacity:1;stroke:var(--ink);stroke-width:1.5}\n";
  return "<style>\n" + css + "</style>\n";
}

std::string time_label(double seconds) {
  if (seconds < 0.999) return fmt::format("{:g} ms", 1000 * seconds);
  return fmt::format("{:g} s", seconds);
}

// Lines at each decade, labelled; at 2 and 5 too where the axis is short.
std::string time_grid(const Scale& x, const Scale& y) {
  std::string svg;
  const bool dense = x.high - x.low < 2.5;
  for (int decade = -9; decade < 10; ++decade) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double seconds = digit * std::pow(10.0, decade), at = std::log10(seconds);
      if (at < x.low || at > x.high || (digit > 1 && !dense)) continue;
      const double px = x.at(seconds), py = y.at(seconds);
      svg += line(px, top, px, bottom, "grid") + line(px, ratio_top, px, ratio_bottom, "grid");
      svg += line(left_edge, py, right_edge, py, "grid");
      svg += text(px, ratio_bottom + 20, "dim mid num", time_label(seconds));
      svg += text(left_edge - 8, py + 4.5, "dim end num", time_label(seconds));
    }
  }
  return svg;
}

// Between y = x / 1.1 and y = 1.1 x, and the line y = x.
std::string equality(const Scale& y) {
  const double reach = std::log10(1.1) / (y.high - y.low) * (y.from - y.to);
  std::string svg = fmt::format(
      "<clipPath id=\"times\"><rect x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\"/></clipPath>\n"
      "<g clip-path=\"url(#times)\"><polygon class=\"band\" points=\"{0},{4:.1f} {5},{6:.1f} "
      "{5},{7:.1f} {0},{8:.1f}\"/></g>\n",
      left_edge, top, right_edge - left_edge, bottom - top, bottom - reach, right_edge, top - reach,
      top + reach, bottom + reach);
  return svg + line(left_edge, bottom, right_edge, top, "equal");
}

std::string frame(double from, double to) {
  return fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"frame\"/>\n",
                     left_edge, from, right_edge - left_edge, to - from);
}

Scale ratio_scale() {
  return {-std::log10(largest_ratio), std::log10(largest_ratio), ratio_bottom, ratio_top};
}

std::string ratio_grid() {
  const Scale y = ratio_scale();
  std::string svg =
      fmt::format("<rect x=\"{}\" y=\"{:.1f}\" width=\"{}\" height=\"{:.1f}\" class=\"band\"/>\n",
                  left_edge, y.at(1.1), right_edge - left_edge, y.at(1 / 1.1) - y.at(1.1));
  for (const double ratio : {0.5, 0.8, 1.25, 2.0}) {
    svg += line(left_edge, y.at(ratio), right_edge, y.at(ratio), "grid");
    svg += text(left_edge - 8, y.at(ratio) + 4.5, "dim end num", fmt::format("{:g}x", ratio));
  }
  svg += text(left_edge - 8, y.at(1) + 4.5, "dim end num", "1x");
  return svg + line(left_edge, y.at(1), right_edge, y.at(1), "equal");
}

std::string hover(const ValidationRow& row) {
  std::string words = fmt::format(
      "{}\n{} on {}, {}, {}\nmeasured {:.4g} s, predicted {:.4g} s "
      "({:+.1f} %)",
      row.id, row.facts.stack, row.facts.device, row.facts.parallelism, row.facts.precision,
      row.measured, row.predicted, row.error_pct());
  if (row.interval) {
    words += fmt::format("\n90 % interval {:.4g} to {:.4g} s", row.interval->low.value,
                         row.interval->high.value);
  }
  return "<title>" + costmodel::html_text(words) + "</title>";
}

// A point in each panel. Bars leave the frame only where their point would.
std::string points(const ValidationRow& row, std::size_t colour, const Scale& x, const Scale& y) {
  const double px = x.at(row.measured), py = y.at(row.predicted);
  const Scale r = ratio_scale();
  const double ratio = std::clamp(row.predicted / row.measured, 1 / largest_ratio, largest_ratio);
  std::string svg = fmt::format("<g class=\"k{}\">{}", colour % light.size(), hover(row));
  if (row.interval) {
    svg += fmt::format("<path class=\"bar\" d=\"M{:.1f} {:.1f}V{:.1f}\"/>", px,
                       std::min(bottom, y.at(row.interval->low.value)),
                       std::max(top, y.at(row.interval->high.value)));
  }
  return svg + marker(colour, px, py) + marker(colour, px, r.at(ratio)) + "</g>\n";
}

std::string legend(const std::vector<Framework>& frameworks) {
  std::string svg = text(legend_left + 22, top + 6, "dim head", "framework") +
                    text(legend_runs, top + 6, "dim head end", "runs") +
                    text(legend_right, top + 6, "dim head end", "mean error");
  double y = top + 30;
  for (std::size_t i = 0; i < frameworks.size(); ++i, y += 23) {
    const auto& [name, figures] = frameworks[i];
    svg += fmt::format("<g class=\"k{}\">{}</g>\n", i % light.size(),
                       marker(i, legend_left + 7, y - 4.5));
    svg += text(legend_left + 22, y, "", name.size() > 22 ? name.substr(0, 21) + "…" : name);
    svg += text(legend_runs, y, "num end", fmt::format("{}", figures.rows));
    svg += text(legend_right, y, "num end", fmt::format("{:.1f} %", figures.mape));
  }
  y += 14;
  svg += line(legend_left, y - 4.5, legend_left + 14, y - 4.5, "equal");
  svg += text(legend_left + 22, y, "dim", "predicted = measured");
  svg += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"14\" height=\"12\" class=\"band\"/>\n",
                     legend_left, y + 12);
  svg += text(legend_left + 22, y + 23, "dim", "within 10 %");
  svg += line(legend_left + 7, y + 34, legend_left + 7, y + 50, "frame");
  return svg + text(legend_left + 22, y + 46, "dim", "90 % interval of the prediction");
}

std::string head(const std::string& subtitle) {
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"scatter\" viewBox=\"0 0 {0} {1}\" "
             "width=\"{0}\" height=\"{1}\" role=\"img\" aria-label=\"predicted against measured "
             "iteration time\">\n",
             width, height) +
         style_sheet() +
         fmt::format("<rect class=\"paper\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n", width,
                     height) +
         text(left_edge, 38, "title", "Predicted against measured iteration time") +
         text(left_edge, 62, "dim", subtitle);
}

}  // namespace

std::string scatter_svg(const std::vector<ValidationRow>& rows) {
  std::vector<const ValidationRow*> timed;
  for (const auto& row : rows) {
    if (row.predicted_time() && row.measured > 0 && row.predicted > 0) timed.push_back(&row);
  }
  if (timed.empty()) return head("no run could be predicted") + "</svg>\n";
  const ValidationSummary s = summary_of(rows);
  const auto frameworks = frameworks_of(s.by_framework);
  const Scale x = time_scale(timed, left_edge, right_edge), y = time_scale(timed, bottom, top);
  std::string svg = head(
      fmt::format("{} published runs of {} sources. Mean error over sources {:.1f} %; {:.0f} % "
                  "lie in their 90 % interval.",
                  s.all.rows, s.by_source.size(), s.macro_mape, s.all.coverage));
  svg += time_grid(x, y) + equality(y) + ratio_grid();
  svg += "<g class=\"runs\">\n";
  for (std::size_t i = 0; i < frameworks.size(); ++i) {
    for (const auto* row : timed) {
      if (row->facts.framework == frameworks[i].name) svg += points(*row, i, x, y);
    }
  }
  svg += "</g>\n" + frame(top, bottom) + frame(ratio_top, ratio_bottom);
  svg += text((left_edge + right_edge) / 2, ratio_bottom + 46, "mid", "measured");
  for (const auto& [from, to, words] :
       {std::tuple(top, bottom, "predicted"),
        std::tuple(ratio_top, ratio_bottom, "predicted / measured")}) {
    svg += fmt::format(
        "<text transform=\"translate(20 {:.1f}) rotate(-90)\" class=\"mid\">{}</text>\n",
        (from + to) / 2, words);
  }
  return svg + legend(frameworks) + "</svg>\n";
}

}  // namespace planner
