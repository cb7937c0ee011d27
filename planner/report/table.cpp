#include "planner/report/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "costmodel/base/escape.hpp"

namespace planner {

using namespace costmodel;

std::string one_decimal(double number) { return fmt::format("{:.1f}", number); }

namespace {

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::string space(width - std::min(width, display_width(text)), ' ');
  return right ? space + text : text + space;
}

std::vector<std::string> titles(const Table& table) {
  std::vector<std::string> list;
  for (const Column& column : table.columns) list.push_back(column.title);
  return list;
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string text;
  for (std::size_t c = 0; c < cells.size(); ++c) text += (c ? "," : "") + csv_field(cells[c]);
  return text + "\n";
}

std::string markdown_line(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const auto& cell : cells) text += " " + markdown_text(cell) + " |";
  return text + "\n";
}

// Numbers as people read them.
Table with_shown_numbers(Table table) {
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].shown.empty()) continue;
    for (auto& row : table.rows) {
      double number = 0;
      const char* const end = row[c].data() + row[c].size();
      const auto read = std::from_chars(row[c].data(), end, number);
      if (read.ec == std::errc() && read.ptr == end)
        row[c] = fmt::format(fmt::runtime(table.columns[c].shown), number);
    }
  }
  return table;
}

// Columns are as wide as what is seen of the cells.
Table with_printable_cells(Table table) {
  for (Column& column : table.columns) column.title = printable(column.title);
  for (auto& row : table.rows) {
    for (std::string& cell : row) cell = printable(cell);
  }
  return table;
}

using Widths = std::vector<std::size_t>;

// Narrower prose has too few words a line.
constexpr std::size_t narrowest_prose = 24, narrowest_cell = 12;

std::size_t longest_word(const std::string& text) {
  std::size_t longest = 0;
  for (const std::string& word : unbroken_words(text))
    longest = std::max(longest, display_width(word));
  return longest;
}

// Lays a table out in columns of characters.
class TextTable {
 public:
  TextTable(Table table, std::size_t indent, std::size_t width)
      : table_(std::move(table)), indent_(indent), width_(width) {
    for (std::size_t c = 0; c < table_.columns.size(); ++c) {
      measure(c);
      shown_.push_back(c);
    }
    enough_ = sum(least_);
    while (sum(least_) > width_ && leave_one_out()) {
    }
    if (sum(least_) > width_) least_ = tightest_;
    shrink();
  }

  std::string lines() const {
    std::string text = row_text(titles(table_));
    for (const auto& row : table_.rows) text += row_text(row);
    return text;
  }

  // Which columns are left out, and what would show them.
  std::string left_out() const {
    std::string names;
    for (std::size_t c = 0; c < table_.columns.size(); ++c) {
      if (std::ranges::count(shown_, c) > 0) continue;
      const std::string& title = table_.columns[c].title;
      names += (names.empty() ? "" : ", ") + (title.empty() ? "remarks" : title);
    }
    if (names.empty()) return "";
    return wrapped(fmt::format("{}(not shown in {} columns: {}; COLUMNS={} shows all)\n",
                               std::string(indent_, ' '), width_, names, enough_),
                   width_);
  }

 private:
  void measure(std::size_t c) {
    const Column& column = table_.columns[c];
    std::size_t widest = display_width(column.title), word = longest_word(column.title), cells = 0;
    for (const auto& row : table_.rows) {
      cells = std::max(cells, display_width(row[c]));
      if (!column.right) word = std::max(word, longest_word(row[c]));
    }
    widest = std::max(widest, cells);
    const std::size_t prose = std::max(word, std::min(widest, narrowest_prose));
    widths_.push_back(widest);
    least_.push_back(column.right ? std::max(word, cells) : prose);
    tightest_.push_back(std::min(least_.back(), column.right ? widest : narrowest_cell));
  }

  std::size_t sum(const Widths& widths) const {
    std::size_t all = indent_ + 2 * (shown_.size() - 1);
    for (const std::size_t c : shown_) all += widths[c];
    return all;
  }

  // False when all that are shown must stay.
  bool leave_one_out() {
    std::size_t most = 0;  // the place in `shown_` of what goes first
    for (std::size_t i = 1; i < shown_.size(); ++i) {
      const int own = table_.columns[shown_[i]].optional;
      if (own > 0 && (most == 0 || own >= table_.columns[shown_[most]].optional)) most = i;
    }
    if (most > 0) shown_.erase(shown_.begin() + static_cast<std::ptrdiff_t>(most));
    return most > 0;
  }

  // Takes from the widest column until the line fits.
  void shrink() {
    while (sum(widths_) > width_) {
      std::size_t* widest = nullptr;
      for (const std::size_t c : shown_) {
        if (widths_[c] > least_[c] && (widest == nullptr || widths_[c] > *widest))
          widest = &widths_[c];
      }
      if (widest == nullptr) return;
      --*widest;
    }
  }

  std::vector<std::string> cell_lines(const std::string& cell, std::size_t width) const {
    std::vector<std::string> lines;
    const std::string text = wrapped(cell, width, 0);
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      lines.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    return lines;
  }

  std::string row_text(const std::vector<std::string>& cells) const {
    std::vector<std::vector<std::string>> parts;
    std::size_t height = 1;
    for (const std::size_t c : shown_) {
      parts.push_back(cell_lines(cells[c], widths_[c]));
      height = std::max(height, parts.back().size());
    }
    std::string text;
    for (std::size_t i = 0; i < height; ++i) text += line_text(parts, i);
    return text;
  }

  std::string line_text(const std::vector<std::vector<std::string>>& parts, std::size_t i) const {
    std::string text(indent_, ' ');
    for (std::size_t k = 0; k < shown_.size(); ++k) {
      if (k > 0) text += "  ";
      const std::size_t c = shown_[k];
      text += padded(i < parts[k].size() ? parts[k][i] : "", widths_[c], table_.columns[c].right);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  }

  Table table_;
  std::size_t indent_, width_;
  std::size_t enough_ = 0;            // columns of a line that shows all
  Widths widths_, least_, tightest_;  // of each column of the table
  std::vector<std::size_t> shown_;
};

}  // namespace

std::string to_text(const Table& given, int indent, std::size_t width) {
  const auto margin = static_cast<std::size_t>(indent);
  const TextTable text(with_printable_cells(with_shown_numbers(given)), margin, width);
  return text.lines() + text.left_out();
}

std::string to_markdown(const Table& given) {
  const Table table = with_shown_numbers(given);
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
