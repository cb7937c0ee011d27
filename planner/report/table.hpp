// A table that can be printed as text, Markdown or CSV. Cells hold any text: each form escapes it.
#pragma once

#include <string>
#include <vector>

namespace planner {

struct Column {
  std::string title;
  bool right = true;  // right-aligned, for numbers
};

struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  // each as long as `columns`
};

// Columns are padded to their widest cell, with two spaces between them; each line starts with
// `indent` spaces.
std::string to_text(const Table& table, int indent = 2);
std::string to_markdown(const Table& table);
std::string to_csv(const Table& table);  // RFC 4180, no formulas

// A number with one decimal.
std::string one_decimal(double number);

// Terminal columns of UTF-8 text.
std::size_t display_width(const std::string& text);

}  // namespace planner
