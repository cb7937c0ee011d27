#include "planner/page/svg_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "costmodel/base/escape.hpp"
#include "planner/page/svg_bar.hpp"

namespace planner {

namespace {

using namespace costmodel;

constexpr double chart_width = 1000,
                 chart_height = 400;  // units of the picture; the page stretches them

// The next of 1, 2, 2.5, 5 times a power of ten, for ticks.
double nice_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double step : {1.0, 2.0, 2.5, 5.0}) {
    if (step * power >= least * (1 - 1e-9)) return step * power;
  }
  return 10 * power;
}

class Axes {
 public:
  explicit Axes(const Chart& chart) {
    for (const ChartLine& line : chart.lines) {
      for (const ChartPoint& point : line.points) {
        if (point.y) top_ = std::max(top_, *point.y);
        all_x_.push_back(point.x);
      }
    }
    if (all_x_.empty() || !(top_ > 0) || !std::isfinite(top_)) return;
    constexpr double ticks = 4;
    step_ = nice_step(top_ / ticks);
    top_ = step_ * std::ceil(top_ / step_ * (1 - 1e-9));
    const auto [least, most] = std::ranges::minmax(all_x_);
    constexpr double wide = 8;
    log_ = !chart.even && least > 0 && most >= wide * least;
    from_ = scaled(least);
    to_ = scaled(most);
  }
  bool any() const { return step_ > 0; }
  double step() const { return step_; }
  double top() const { return top_; }
  // From 0 to 1, with room at both sides.
  double across(double x) const {
    constexpr double room = 0.04;
    if (!(to_ > from_)) return 0.5;
    return room + (1 - 2 * room) * (scaled(x) - from_) / (to_ - from_);
  }
  double up(double y) const { return std::clamp(y / top_, 0.0, 1.0); }

 private:
  double scaled(double x) const { return log_ ? std::log(x) : x; }

  std::vector<double> all_x_;
  double top_ = 0, step_ = 0, from_ = 0, to_ = 0;
  bool log_ = false;
};

std::string line_svg(const ChartLine& line, const Axes& axes) {
  std::string path, dots;
  bool on = false;
  for (const ChartPoint& point : line.points) {
    if (!point.y) {
      on = false;
      continue;
    }
    const double x = chart_width * axes.across(point.x), y = chart_height * (1 - axes.up(*point.y));
    path += fmt::format("{}{:.1f} {:.1f}", on ? "L" : "M", x, y);
    on = true;
    dots += fmt::format("<path class=\"dot{} {}\" d=\"M{:.1f} {:.1f}h0\"><title>{}</title></path>",
                        point.marked ? " marked" : "", line.colour, x, y, html_text(point.hover));
  }
  if (!line.joined || path.empty()) return dots;
  return fmt::format("<path class=\"line {}\" d=\"{}\"/>", line.colour, path) + dots;
}

std::string y_ticks(const Chart& chart, const Axes& axes, std::string& grid) {
  std::string html;
  for (double y = 0; y <= axes.top() * (1 + 1e-9); y += axes.step()) {
    html += fmt::format("<span style=\"bottom:{:.1f}%\">{}</span>", 100 * axes.up(y),
                        html_text(chart.y_text(y)));
    grid += fmt::format("M0 {:.1f}H{}", chart_height * (1 - axes.up(y)), chart_width);
  }
  return html;
}

// The places in `x_values` that get a word.
std::vector<std::size_t> told_x(const Chart& chart, const Axes& axes) {
  constexpr double apart = 0.1;  // of the width: closer ones are left out
  std::vector<std::size_t> told;
  double last = -1;
  for (std::size_t i = 0; i < chart.x_values.size(); ++i) {
    const double at = axes.across(chart.x_values[i]);
    if (at - last < apart) continue;
    last = at;
    told.push_back(i);
  }
  return told;
}

std::string x_ticks(const Chart& chart, const Axes& axes) {
  std::string html;
  for (const std::size_t i : told_x(chart, axes)) {
    html += fmt::format("<span style=\"left:{:.1f}%\">{}</span>",
                        100 * axes.across(chart.x_values[i]), html_text(chart.x_names[i]));
  }
  return html;
}

// The least and the largest value that count.
struct Extremes {
  double least = INFINITY, most = 0;
};

Extremes extremes_of(const HeatMap& map) {
  Extremes e;
  for (const auto& row : map.cells) {
    for (const HeatCell& cell : row) {
      if (!cell.value || cell.grey) continue;
      e.least = std::min(e.least, *cell.value);
      e.most = std::max(e.most, *cell.value);
    }
  }
  return e;
}

struct CellSize {
  double across, down;
};

CellSize cell_size(const HeatMap& map) {
  const auto part = [](double whole, std::size_t parts) {
    return whole / static_cast<double>(std::max<std::size_t>(1, parts));
  };
  return {part(chart_width, map.columns.size()), part(chart_height, map.rows.size())};
}

std::string heat_boxes(const HeatMap& map) {
  const auto [least, most] = extremes_of(map);
  const auto [w, h] = cell_size(map);
  std::string boxes;
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      const HeatCell& cell = map.cells[r][c];
      if (!cell.value) continue;
      const double dark = most > least ? (most - *cell.value) / (most - least) : 1;
      boxes += fmt::format(
          "<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" "
          "fill-opacity=\"{:.3f}\"><title>{}</title></rect>",
          cell.grey ? "bubble" : "reduction", w * static_cast<double>(c),
          h * static_cast<double>(r), w, h, cell.grey ? 0.4 : 0.08 + 0.6 * dark,
          html_text(cell.hover));
    }
  }
  return boxes;
}

// A file with room for words at the left, above and below.
std::string svg_file(const std::string& label, const std::string& body) {
  constexpr std::string_view style =
      "svg{background:#fff;font:17px system-ui,sans-serif;--dim:#59636e;--line:#d8dee4}"
      ".compute{--c:#0072b2}.tp{--c:#e69f00}.reduction{--c:#009e73}.pp{--c:#cc79a7}.ep{--c:#d55e00}"
      ".recompute{--c:#56b4e9}.optimizer{--c:#6a3d9a}.cp{--c:#f0c400}.bubble{--c:#c8cdd4}"
      "text{fill:var(--dim)}text.on{fill:#1f2328}text.of{fill:var(--c)}rect{fill:var(--c)}"
      ".grid{stroke:var(--line);fill:none}.line{stroke:var(--c);stroke-width:3;fill:none}"
      ".dot{stroke:var(--c);stroke-width:10;stroke-linecap:round}.dot.marked{stroke-width:19}"
      "@media(prefers-color-scheme:dark){svg{background:#17191d;--dim:#99a3ad;--line:#33383f}"
      "text.on{fill:#f0f3f6}}";
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-130 -60 1160 540\" role=\"img\" "
      "aria-label=\"{}\">\n<style>{}</style>\n{}</svg>\n",
      html_text(label), style, body);
}

// `anchor`: start, middle or end; `kind`: a class, or "".
std::string word(double x, double y, const char* anchor, const std::string& text,
                 const std::string& kind = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y,
                     anchor, kind.empty() ? "" : " class=\"" + kind + "\"", html_text(text));
}

}  // namespace

std::string chart_html(const Chart& chart) {
  const Axes axes(chart);
  if (!axes.any()) return "";
  std::string grid, lines, legend;
  const std::string ticks = y_ticks(chart, axes, grid);
  for (const ChartLine& line : chart.lines) {
    lines += line_svg(line, axes);
    if (chart.lines.size() > 1)
      legend += "<span>" + swatch(line.colour) + html_text(line.name) + "</span>";
  }
  if (!legend.empty()) legend = "<div class=\"legend\">" + legend + "</div>\n";
  return fmt::format(
      "<figure class=\"chart\"><figcaption>{}</figcaption>\n<div class=\"up\">{}</div>"
      "<svg viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">"
      "<path class=\"grid\" d=\"{}\"/>{}</svg>\n<div class=\"across\">{}</div>"
      "<div class=\"title\">{}</div></figure>\n{}",
      html_text(chart.y_title), ticks, chart_width, chart_height, html_text(chart.label), grid,
      lines, x_ticks(chart, axes), html_text(chart.x_title), legend);
}

std::string chart_svg(const Chart& chart) {
  const Axes axes(chart);
  if (!axes.any()) return "";
  std::string grid, words;
  y_ticks(chart, axes, grid);
  for (double y = 0; y <= axes.top() * (1 + 1e-9); y += axes.step())
    words += word(-10, chart_height * (1 - axes.up(y)) + 6, "end", chart.y_text(y));
  for (const std::size_t i : told_x(chart, axes)) {
    words += word(chart_width * axes.across(chart.x_values[i]), chart_height + 26, "middle",
                  chart.x_names[i]);
  }
  words += word(0, -32, "start", chart.y_title);
  words += word(chart_width / 2, chart_height + 58, "middle", chart.x_title);
  std::string lines;
  double at = chart_width;
  for (const ChartLine& line : chart.lines) {
    lines += line_svg(line, axes);
    if (chart.lines.size() < 2) continue;
    words += word(at, -32, "end", line.name, "of " + std::string(line.colour));
    at -= chart_width * 0.16;
  }
  return svg_file(chart.label,
                  fmt::format("<path class=\"grid\" d=\"{}\"/>\n{}\n{}", grid, lines, words));
}

std::string heat_map_html(const HeatMap& map) {
  std::string words, left, below;
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    left += "<span>" + html_text(map.rows[r]) + "</span>";
    for (const HeatCell& cell : map.cells[r]) words += "<span>" + html_text(cell.shown) + "</span>";
  }
  for (const auto& column : map.columns) below += "<span>" + html_text(column) + "</span>";
  return fmt::format(
      "<figure class=\"heat\"><figcaption>{}</figcaption>\n<div class=\"left\">{}</div>"
      "<div class=\"cells\" style=\"--across:{};height:{}px\"><svg viewBox=\"0 0 {} {}\" "
      "preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">{}</svg>"
      "<div class=\"words\">{}</div></div>\n<div class=\"below\" style=\"--across:{}\">{}</div>"
      "<div class=\"title\">{}</div></figure>\n",
      html_text(map.row_title), left, map.columns.size(), 34 * map.rows.size(), chart_width,
      chart_height, html_text(map.label), heat_boxes(map), words, map.columns.size(), below,
      html_text(map.column_title));
}

std::string heat_map_svg(const HeatMap& map) {
  const auto [w, h] = cell_size(map);
  std::string words = word(0, -32, "start", map.row_title);
  words += word(chart_width / 2, chart_height + 58, "middle", map.column_title);
  for (std::size_t c = 0; c < map.columns.size(); ++c)
    words += word(w * (static_cast<double>(c) + 0.5), chart_height + 26, "middle", map.columns[c]);
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    const double y = h * (static_cast<double>(r) + 0.5) + 6;
    words += word(-10, y, "end", map.rows[r]);
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      words += word(w * (static_cast<double>(c) + 0.5), y, "middle", map.cells[r][c].shown, "on");
    }
  }
  return svg_file(map.label, heat_boxes(map) + "\n" + words);
}

}  // namespace planner
