#include "costmodel/schedule/schedule_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"

namespace costmodel {

namespace {

// Of stages times micro-batches; what a file of the permitted size can list is far below.
constexpr std::int64_t most_cells = std::int64_t{1} << 24;

struct Cell {
  std::string_view text;
  int line, column, number;  // from 1; the number counts the cells of the row
};

// A row: its cells that are not empty, and the place behind the last.
struct Row {
  std::vector<Cell> cells;
  Cell end;
};

std::string_view without_blanks(std::string_view text, int& column) {
  constexpr std::string_view blanks = " \t\r";
  const auto from = text.find_first_not_of(blanks);
  if (from == std::string_view::npos) return {};
  column += static_cast<int>(from);
  return text.substr(from, text.find_last_not_of(blanks) + 1 - from);
}

Row row_of_line(std::string_view line, int number, std::string_view separators) {
  Row row;
  int count = 0;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find_first_of(separators, at), line.size());
    int column = static_cast<int>(at) + 1;
    std::string_view cell = without_blanks(line.substr(at, end - at), column);
    if (separators == "," || !cell.empty()) ++count;
    if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') {  // as CSV may have it
      cell = cell.substr(1, cell.size() - 2);
      ++column;
    }
    if (!cell.empty()) row.cells.push_back({cell, number, column, count});
    at = end + 1;
  }
  row.end = {{}, number, static_cast<int>(line.size()) + 1, count + 1};
  return row;
}

std::vector<Row> rows_of(std::string_view text, bool csv) {
  std::vector<Row> rows;
  int number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    rows.push_back(row_of_line(text.substr(at, end - at), ++number, csv ? "," : " \t"));
    at = end + 1;
  }
  while (!rows.empty() && rows.back().cells.empty()) rows.pop_back();
  return rows;
}

constexpr std::string_view overlapped_word = ")OVERLAP_F_B";  // PyTorch's word, behind "(0F3;7B2"

// The actions of a cell, most often one: joined by plus, or in PyTorch's brackets.
std::vector<std::string_view> actions_of(std::string_view text, bool csv) {
  char joint = '+';
  if (csv && text.starts_with('(') && text.ends_with(overlapped_word)) {
    text = text.substr(1, text.size() - 1 - overlapped_word.size());
    joint = ';';
  }
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(joint, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// The schedule with the cell of each action.
struct Listed {
  Schedule schedule;
  std::vector<std::vector<Cell>> cells;  // as `actions`
  std::vector<Cell> ends;                // by rank
};

class Reader {
 public:
  Reader(const std::string& text, const std::string& file)
      : file_(file), csv_(text.find(',') != std::string::npos), rows_(rows_of(text, csv_)) {
    if (rows_.empty())
      throw ConfigError({file_, 0, 0}, "the schedule has no rows", "write a row a rank: " + form());
  }

  Listed listed() {
    Listed result;
    for (const Row& row : rows_) {
      result.schedule.actions.emplace_back();
      result.cells.emplace_back();
      for (const Cell& cell : row.cells) add(cell, result);
      result.ends.push_back(row.end);
    }
    settle(result.schedule);
    return result;
  }

  ConfigError error(const Cell& cell, const std::string& wrong, const std::string& remedy) const {
    return {{file_, cell.line, cell.column}, wrong, remedy};
  }

 private:
  std::string form() const {
    return csv_ ? "0F0,0F1,0B0,0B1, with I and W instead of B where the backward is split"
                : "0F0 0F1 0B0 0B1, and 0W0 where the backward is split";
  }

  // I and W split the backward; a B beside them runs both.
  bool splits() const {
    const auto split = [](const Cell& cell) {
      return cell.text.find_first_of("IW") != std::string_view::npos;
    };
    return std::ranges::any_of(
        rows_, [&](const Row& row) { return std::ranges::any_of(row.cells, split); });
  }

  void add(const Cell& cell, Listed& to) {
    bool beside = false;
    for (const std::string_view action : actions_of(cell.text, csv_)) {
      add(action, beside, cell, to);
      beside = true;
    }
  }

  void add(std::string_view text, bool beside, const Cell& cell, Listed& to) {
    const auto parts = split_action(text);
    const auto put = [&](ActionKind kind) {
      to.schedule.actions.back().push_back({kind, parts->stage, parts->micro_batch, beside});
      to.cells.back().push_back(cell);
    };
    const std::string_view word = parts ? parts->word : std::string_view();
    if (word == "F") return put(ActionKind::forward);
    if (word == "W") return put(ActionKind::weight_gradient);
    if (word == "I" && csv_) return put(ActionKind::backward);
    if (word != "B") {
      // Of a file that begins otherwise nothing is shown: it may be anything on this machine.
      const bool schedule = !to.cells.front().empty();
      throw error(cell,
                  fmt::format("rank {}, cell {}{} is not an action", rank_of_line(cell),
                              cell.number, schedule ? ": " + quote(cell.text) : ""),
                  fmt::format("write [stage][{}][micro-batch]; transfers follow from the order",
                              csv_ ? "F|B|I|W" : "F|B|W"));
    }
    put(ActionKind::backward);
    if (!csv_ || !split_) return;
    beside = true;  // a whole backward sends nothing before its end
    put(ActionKind::weight_gradient);
  }

  static int rank_of_line(const Cell& cell) { return cell.line - 1; }

  // Ranks, chunks, micro-batches and placement.
  void settle(Schedule& s) const {
    int last_stage = 0, last_batch = 0;
    for (const Actions& list : s.actions) {
      for (const Action& action : list) {
        last_stage = std::max(last_stage, action.stage);
        last_batch = std::max(last_batch, action.micro_batch);
      }
    }
    s.ranks = static_cast<int>(s.actions.size());
    const std::int64_t stages = std::int64_t{last_stage} + 1,
                       batches = std::int64_t{last_batch} + 1;
    const Mark whole{file_, 0, 0};
    if (stages % s.ranks != 0) {
      throw ConfigError(
          whole, fmt::format("stages 0 to {} do not divide among the {} rows", last_stage, s.ranks),
          "write a row for every rank, and as many stages on each");
    }
    if (stages > most_cells || batches > most_cells || stages * batches > most_cells) {
      throw ConfigError(whole,
                        fmt::format("{} stages and {} micro-batches are too many", stages, batches),
                        fmt::format("at most {} of both multiplied", most_cells));
    }
    s.chunks = static_cast<int>(stages / s.ranks);
    s.micro_batches = static_cast<int>(batches);
    s.kind = listed_kind(split_, s.chunks > 1 && s.ranks > 1 && turns_back(s));
  }

  // Whether the second chunk begins where the first ends.
  static bool turns_back(const Schedule& s) {
    return std::ranges::any_of(s.actions.back(),
                               [&](const Action& action) { return action.stage == s.ranks; });
  }

  const std::string& file_;
  bool csv_;
  std::vector<Row> rows_;
  bool split_ = splits();
};

bool is_interleaved_order(const Schedule& s) {
  if (s.chunks == 1 || s.micro_batches % s.ranks != 0) return false;
  return s.actions == interleaved_order({s.ranks, s.chunks, s.micro_batches, nullptr});
}

}  // namespace

ListedSchedule parse_schedule_file(const std::string& text, const std::string& file) {
  Reader reader(text, file);
  Listed listed = reader.listed();
  if (const auto fault = validate(listed.schedule)) {
    const auto rank = static_cast<std::size_t>(fault->rank);
    const auto step = static_cast<std::size_t>(fault->step);
    const bool there = step < listed.cells[rank].size();
    const Cell& cell = there ? listed.cells[rank][step] : listed.ends[rank];
    const std::string what =
        there ? fmt::format("cell {} ({})", cell.number, cell.text) : "the end";
    throw reader.error(cell, fmt::format("rank {}, {}: {}", rank, what, fault->reason),
                       fault->remedy);
  }
  const bool rounds = is_interleaved_order(listed.schedule);
  return {file, std::move(listed.schedule), rounds};
}

namespace {

// A cell's weight gradients belong to its backward, which is a whole one.
std::string csv_cell(std::span<const Action> cell, bool split) {
  const Action& first = cell.front();
  if (cell.size() == 1) {
    return split && first.kind == ActionKind::backward
               ? fmt::format("{}I{}", first.stage, first.micro_batch)
               : to_text(first);
  }
  std::string text;
  int count = 0;
  for (const Action& action : cell) {
    if (action.kind == ActionKind::weight_gradient) continue;
    text += (count++ > 0 ? ";" : "") + to_text(action);
  }
  return count == 1 ? text : fmt::format("({}{}", text, overlapped_word);
}

}  // namespace

std::string to_csv(const Schedule& schedule) {
  const bool split = splits_backward(schedule.kind);
  std::string text;
  for (const Actions& list : schedule.actions) {
    for (std::size_t at = 0; at < list.size();) {
      const auto cell = cell_at(list, at);
      text += (at > 0 ? "," : "") + csv_cell(cell, split);
      at += cell.size();
    }
    text += '\n';
  }
  return text;
}

}  // namespace costmodel
