// Charts and heat maps: SVG that stretches to the width it is given, so without text, and the words
// beside it as HTML, which keeps its size.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planner {

struct ChartPoint {
  double x = 0;
  std::optional<double> y;  // nothing: a gap
  std::string hover;        // text
  bool marked = false;      // drawn larger
};

struct ChartLine {
  std::string_view colour;  // a class: "compute"
  std::string name = {};    // for the legend; text
  std::vector<ChartPoint> points = {};
  bool joined = true;  // by a line, else points alone
};

struct Chart {
  std::string label;                      // read out instead of the picture
  std::string x_title, y_title = {};      // text
  std::vector<std::string> x_names = {};  // of the values in `x_values`; text
  std::vector<double> x_values = {};
  std::string (*y_text)(double);  // of a tick
  std::vector<ChartLine> lines = {};
  bool even = false;  // steps of x are as wide everywhere
};

// Upwards from 0; x by its logarithm where all are positive and the largest is 8 times the least
// or more, unless it is to be even. "" without a point.
std::string chart_html(const Chart& chart);

// The same as a file of its own, its words in it; "" without a point.
std::string chart_svg(const Chart& chart);

struct HeatCell {
  std::optional<double> value;  // nothing: no answer
  std::string shown, hover;     // text
  bool grey = false;            // an answer that does not count
};

struct HeatMap {
  std::string label;
  std::string row_title, column_title;
  std::vector<std::string> rows = {}, columns = {};  // text
  std::vector<std::vector<HeatCell>> cells = {};     // by row
};

// The least value darkest.
std::string heat_map_html(const HeatMap& map);
std::string heat_map_svg(const HeatMap& map);

}  // namespace planner
