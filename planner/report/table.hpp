// A table that can be printed as text, Markdown or CSV. Cells hold any text: each form escapes it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "costmodel/base/text_width.hpp"

namespace planner {

using costmodel::display_width;
using costmodel::unlimited_width;

struct Column {
  // A title alone is a column of numbers.
  Column(std::string text, bool numbers = true, int may_go = 1, std::string_view format = {})
      : title(std::move(text)), right(numbers), optional(may_go), shown(format) {}
  Column(const char* text, bool numbers = true, int may_go = 1, std::string_view format = {})
      : Column(std::string(text), numbers, may_go, format) {}

  std::string title;
  bool right;  // right-aligned, for numbers
  // Where lines are too short for all columns, those with the highest number are left out first, of
  // equals the last. 0, and the first column: never.
  int optional;
  // How people read its numbers, a format of fmt ("{:.2f}"); empty: as the cells have them. JSON
  // and CSV have the cells.
  std::string_view shown;
};

inline Column left(std::string title, int optional = 1) {
  return {std::move(title), false, optional};
}
inline Column right(std::string title, int optional) { return {std::move(title), true, optional}; }

struct Table {
  std::vector<Column> columns = {};
  std::vector<std::vector<std::string>> rows = {};  // each as long as `columns`
};

// Columns are padded to their widest cell, with two spaces between them; each line starts with
// `indent` spaces. No line is wider than `width`: titles and prose are broken between words, then
// columns are left out, which a line below says.
std::string to_text(const Table& table, int indent = 2, std::size_t width = unlimited_width);
std::string to_markdown(const Table& table);
std::string to_csv(const Table& table);  // RFC 4180, no formulas

// A number with one decimal.
std::string one_decimal(double number);

}  // namespace planner
