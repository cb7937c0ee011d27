#include "planner/logs/nccl_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <sstream>

#include "costmodel/base/escape.hpp"

namespace planner {

using namespace costmodel;

namespace {

struct Word {
  std::string text;
  int column;
};

std::vector<Word> words_in(const std::string& line) {
  std::vector<Word> words;
  std::size_t from = 0;
  if (line.starts_with('[')) {  // "[1,0]<stdout>:" of mpirun --tag-output
    const auto tag = line.find(">:");
    if (tag != std::string::npos && line.find(']') < tag) from = tag + 2;
  }
  while ((from = line.find_first_not_of(" \t\r", from)) != std::string::npos) {
    std::size_t end = std::min(line.find_first_of(" \t\r", from), line.size());
    if (line[from] == '#' && words.empty()) end = from + 1;  // both "#   size" and "#size"
    words.push_back({line.substr(from, end - from), static_cast<int>(from) + 1});
    from = end;
  }
  return words;
}

bool is_whole(const std::string& word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
}

struct Ranks {
  int count = 0;
  std::set<std::string> hosts;
  std::string device;
};

class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  std::vector<NcclTable> read(const std::string& text) {
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      ++line_;
      const auto words = words_in(line);
      if (words.empty()) continue;
      note_program(words);
      if (words[0].text == "#") {
        read_comment(words);
      } else if (!header_.empty() && is_whole(words[0].text)) {
        read_row(words);
      }
    }
    finish();
    return std::move(tables_);
  }

 private:
  [[noreturn]] void fault(int column, const std::string& wrong, const std::string& remedy) const {
    throw ConfigError({file_, line_, column}, wrong, remedy);
  }

  // ".../all_reduce_perf" of a command line, or "# Collective test starting: all_reduce_perf".
  void note_program(const std::vector<Word>& words) {
    for (const auto& word : words) {
      if (!word.text.ends_with("_perf")) continue;
      const auto slash = word.text.rfind('/');
      op_ = nccl_operation(slash == std::string::npos ? word.text : word.text.substr(slash + 1));
    }
  }

  void read_comment(const std::vector<Word>& words) {
    if (words.size() < 2) return;
    const std::string& first = words[1].text;
    if (first == "nThread" || first == "Using") {
      ranks_ = {};
      header_.clear();
    } else if (first == "Rank") {
      read_rank(words);
    } else if (first == "size") {
      read_header(words);
    } else if (first == "Out" || first == "Avg") {
      header_.clear();
    }
  }

  // "#  Rank  0 Group  0 Pid   6899 on HOST device  0 [0000:04:00] NVIDIA H100 80GB HBM3"
  void read_rank(const std::vector<Word>& words) {
    ++ranks_.count;
    std::size_t i = 1;
    while (i + 1 < words.size() && words[i].text != "on") ++i;
    if (i + 1 < words.size()) ranks_.hosts.insert(words[i + 1].text);
    while (i < words.size() && !words[i].text.ends_with("]")) ++i;
    std::string device;
    for (++i; i < words.size(); ++i) device += (device.empty() ? "" : " ") + words[i].text;
    if (ranks_.device.empty()) ranks_.device = device;
  }

  void read_header(const std::vector<Word>& words) {
    header_.clear();
    for (std::size_t i = 1; i < words.size(); ++i) header_.push_back(words[i].text);
    if (std::ranges::find(header_, "time") == header_.end()) {
      fault(words[0].column, "the table's header names no time",
            "the columns of nccl-tests: size count type redop root time algbw busbw #wrong");
    }
    if (ranks_.count == 0) {
      fault(words[0].column, "the log does not say which ranks ran the table",
            "keep its lines '# Rank ... on HOST device ...'");
    }
    NcclTable table;
    table.op = op_;
    table.device = ranks_.device;
    table.ranks = ranks_.count;
    table.nodes = std::max(1, static_cast<int>(ranks_.hosts.size()));
    table.mark = {file_, line_, words[0].column};
    tables_.push_back(table);
  }

  double number(const Word& word, const std::string& what) const {
    double value = 0;
    const char* end = word.text.data() + word.text.size();
    const auto [at, status] = std::from_chars(word.text.data(), end, value);
    if (status != std::errc() || at != end || !(value >= 0 && std::isfinite(value))) {
      fault(word.column, fmt::format("{}: {} is not a number", what, quote(word.text)),
            "rows of nccl-tests hold numbers here");
    }
    return value;
  }

  void read_row(const std::vector<Word>& words) {
    if (words.size() < header_.size() - (header_.back() == "timestamp" ? 1 : 0)) {
      fault(words.back().column,
            fmt::format("the row ends after {} of {} columns", words.size(), header_.size()),
            "the log is cut off here: remove the row, or give the whole log");
    }
    NcclRow row;
    row.line = line_;
    std::optional<NcclTiming>* timing = nullptr;
    for (std::size_t i = 0; i < header_.size(); ++i) {
      const std::string& name = header_[i];
      if (name == "size") row.bytes = number(words[i], "size");
      if (name == "type") row.type = words[i].text;
      if (name == "time") {
        timing = timing == nullptr ? &row.out_of_place : &row.in_place;
        *timing = NcclTiming{number(words[i], "time")};
      }
      if (timing == nullptr) continue;
      if (name == "algbw") (*timing)->algorithm_gb_s = number(words[i], "algbw");
      if (name == "busbw") (*timing)->bus_gb_s = number(words[i], "busbw");
      if (name == "#wrong" || name == "error") check_results(words[i]);
    }
    if (row.bytes > 0) tables_.back().rows.push_back(row);
  }

  void check_results(const Word& word) const {
    if (word.text == "N/A") return;
    const double wrong = number(word, "#wrong");
    if (wrong >= 1) {  // older versions print a small relative error here
      fault(word.column, fmt::format("{} values came out wrong", word.text),
            "a run that computes wrong is no measurement; repair it first");
    }
  }

  // If no line names the program: inferred from the bandwidth ratio of the largest message.
  void infer_operation(NcclTable& table) const {
    if (!table.op.empty()) return;
    const auto& timing = table.rows.back().out_of_place;
    const double n = table.ranks;
    const double ratio =
        timing && timing->algorithm_gb_s > 0 ? timing->bus_gb_s / timing->algorithm_gb_s : 0;
    if (std::abs(ratio - 2 * (n - 1) / n) < 0.02) {
      table.op = "all_reduce";
      return;
    }
    throw ConfigError(table.mark, "the log does not name the collective",
                      "keep the line '# Collective test starting: ..._perf' or the command");
  }

  void finish() {
    if (tables_.empty()) {
      throw ConfigError({file_, 0, 0}, "holds no table of nccl-tests",
                        "its header begins: # size count type");
    }
    for (auto& table : tables_) {
      if (table.rows.empty())
        throw ConfigError(table.mark, "the table has no rows", "the log is cut off after it");
      infer_operation(table);
    }
  }

  std::string file_;
  int line_ = 0;
  std::string op_;
  Ranks ranks_;
  std::vector<std::string> header_;  // names of the columns; empty outside a table
  std::vector<NcclTable> tables_;
};

}  // namespace

std::vector<NcclTable> read_nccl_text(const std::string& text, const std::string& file) {
  return Reader(file).read(text);
}

}  // namespace planner
