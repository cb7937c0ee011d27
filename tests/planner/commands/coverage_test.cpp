// docs/coverage.md: every command of its tables prints the line that is quoted beside it.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "tests/planner/support/in_process.hpp"
#include "tests/sanitized.hpp"

namespace coverage_test {

namespace {

// A row that quotes a command: what it shows, the words of the command, the line.
struct Row {
  std::string what, command, line;
};

// The cells of a row of a Markdown table, without blanks around them.
std::vector<std::string> cells_of(const std::string& text) {
  std::vector<std::string> cells;
  std::istringstream in(text.substr(1));
  for (std::string cell; std::getline(in, cell, '|');) {
    const std::size_t from = cell.find_first_not_of(' '), to = cell.find_last_not_of(' ');
    cells.push_back(from == std::string::npos ? "" : cell.substr(from, to - from + 1));
  }
  return cells;
}

std::string code_of(const std::string& cell) {
  const bool quoted = cell.size() > 2 && cell.front() == '`' && cell.back() == '`';
  return quoted ? cell.substr(1, cell.size() - 2) : "";
}

std::vector<Row> rows_of(const std::string& file) {
  std::ifstream in(file);
  REQUIRE(in);
  std::vector<Row> rows;
  for (std::string text; std::getline(in, text);) {
    if (text.empty() || text.front() != '|') continue;
    const auto cells = cells_of(text);
    const bool head = cells.size() < 4 || cells[1] == "command" || cells[1].starts_with("---");
    if (!head) rows.push_back({cells[0], code_of(cells[1]), code_of(cells[2])});
  }
  return rows;
}

// Each run of blanks is one: a table's columns are as wide as their contents.
std::string single_blanks(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (c != ' ' || out.empty() || out.back() != ' ') out += c;
  return out;
}

// What it prints, warnings too; of a refusal the message.
std::string printed_by(const std::string& command) try {
  const auto result = in_process::run(command);
  std::string text = result.text + result.failure;
  for (const auto& warning : result.warnings) text += "\n" + warning;
  return text;
} catch (const costmodel::ConfigError& error) {
  return error.what();
}

}  // namespace

TEST_CASE("every command of docs/coverage.md prints the line quoted there") {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(SHARDPLAN_SOURCE_DIR);
  const auto rows = rows_of("docs/coverage.md");
  CHECK(rows.size() >= 20);
  for (const Row& row : thinned(rows, 3)) {
    CAPTURE(row.what);
    CAPTURE(row.command);
    CAPTURE(row.line);
    REQUIRE(row.command.starts_with("shardplan "));
    REQUIRE(row.line.size() >= 4);
    const std::string text = "\n" + single_blanks(printed_by(row.command)) + "\n";
    const std::size_t at = text.find(single_blanks(row.line));
    CHECK_MESSAGE(at != std::string::npos, text);
  }
  std::filesystem::current_path(before);
}

}  // namespace coverage_test
