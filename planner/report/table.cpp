#include "planner/report/table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "costmodel/base/escape.hpp"

namespace planner {

std::string one_decimal(double number) { return fmt::format("{:.1f}", number); }

std::size_t display_width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

namespace {

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::string space(width - std::min(width, display_width(text)), ' ');
  return right ? space + text : text + space;
}

std::string line(const Table& table, const std::vector<std::string>& cells,
                 const std::vector<std::size_t>& widths, int indent) {
  std::string text(static_cast<std::size_t>(indent), ' ');
  for (std::size_t c = 0; c < cells.size(); ++c) {
    if (c > 0) text += "  ";
    text += padded(cells[c], widths[c], table.columns[c].right);
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

std::vector<std::string> titles(const Table& table) {
  std::vector<std::string> list;
  for (const Column& column : table.columns) list.push_back(column.title);
  return list;
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string text;
  for (std::size_t c = 0; c < cells.size(); ++c)
    text += (c ? "," : "") + costmodel::csv_field(cells[c]);
  return text + "\n";
}

std::string markdown_line(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const auto& cell : cells) text += " " + costmodel::markdown_text(cell) + " |";
  return text + "\n";
}

// Columns are as wide as what is seen of the cells.
Table with_printable_cells(Table table) {
  for (Column& column : table.columns) column.title = costmodel::printable(column.title);
  for (auto& row : table.rows) {
    for (std::string& cell : row) cell = costmodel::printable(cell);
  }
  return table;
}

}  // namespace

std::string to_text(const Table& given, int indent) {
  const Table table = with_printable_cells(given);
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    std::size_t width = display_width(table.columns[c].title);
    for (const auto& row : table.rows) width = std::max(width, display_width(row[c]));
    widths.push_back(width);
  }
  std::string text = line(table, titles(table), widths, indent);
  for (const auto& row : table.rows) text += line(table, row, widths, indent);
  return text;
}

std::string to_markdown(const Table& table) {
  std::string text = markdown_line(titles(table));
  text += "|";
  for (const Column& column : table.columns) text += column.right ? " ---: |" : " --- |";
  text += "\n";
  for (const auto& row : table.rows) text += markdown_line(row);
  return text;
}

std::string to_csv(const Table& table) {
  std::string text = csv_line(titles(table));
  for (const auto& row : table.rows) text += csv_line(row);
  return text;
}

}  // namespace planner
