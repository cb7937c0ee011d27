#include "planner/report/memory_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "costmodel/base/unit_text.hpp"

namespace planner {

using namespace costmodel;

namespace {

// Consecutive samples of one kind of layer in one pass; `fullest` stands for them.
struct Group {
  const MemorySample* fullest;
  int layers;
  bool peak;
};

bool together(const MemorySample& a, const MemorySample& b) {
  return a.pass == b.pass && a.stage == b.stage && a.micro_batch == b.micro_batch &&
         a.layer == b.layer;
}

std::vector<Group> groups_of(const MemoryTrace& trace) {
  std::vector<Group> all;
  for (std::size_t i = 0; i < trace.samples.size(); ++i) {
    const MemorySample& own = trace.samples[i];
    const bool peak = i == trace.peak;
    if (!all.empty() && together(*all.back().fullest, own)) {
      Group& last = all.back();
      ++last.layers;
      last.peak = last.peak || peak;
      if (own.allocated > last.fullest->allocated) last.fullest = &own;
    } else {
      all.push_back({&own, 1, peak});
    }
  }
  return all;
}

std::vector<std::string> cells_of(const Group& group) {
  const MemorySample& own = *group.fullest;
  std::vector<std::string> row{std::string(memory_pass_names[static_cast<std::size_t>(own.pass)])};
  const bool step = own.pass == MemorySample::Pass::step;
  row.push_back(step ? "" : std::to_string(own.stage));
  row.push_back(step ? "" : std::to_string(own.micro_batch));
  row.push_back(step ? "optimizer" : fmt::format("{} {}", group.layers, describe(own.layer)));
  row.emplace_back(own.op);
  for (const Bytes held : own.held) row.push_back(format_gib(held));
  row.push_back(format_gib(own.allocated));
  row.push_back(format_gib(own.reserved));
  return row;
}

Table columns() {
  Table t;
  t.columns = {left("pass"),  "stage",   "micro-batch",   left("layers", 0),
               left("at"),    "weights", "gradients",     "optimizer",
               "activations", "buffers", right("all", 0), "reserved"};
  return t;
}

// A row of the table, and the micro-batches that it stands for.
struct Repeated {
  std::vector<std::string> cells;
  const Group* group;
  std::int64_t first, last;  // micro-batches
  bool peak;
};

constexpr std::size_t micro_batch_column = 2;

std::vector<Repeated> rows_of(const std::vector<Group>& groups) {
  std::vector<Repeated> rows;
  for (const Group& group : groups) {
    const std::int64_t own = group.fullest->micro_batch;
    rows.push_back({cells_of(group), &group, own, own, group.peak});
    rows.back().cells[micro_batch_column].clear();
  }
  return rows;
}

// How often the `period` rows from `from` on stand one after the other.
std::size_t times_of(const std::vector<Repeated>& rows, std::size_t from, std::size_t period) {
  std::size_t end = from + period;
  while (end < rows.size() && rows[end].cells == rows[end - period].cells) ++end;
  return (end - from) / period;
}

// A pipeline's steady state has the same rows again and again: each once.
std::vector<Repeated> folded(const std::vector<Repeated>& rows) {
  constexpr std::size_t longest = 256;  // rows that repeat together
  std::vector<Repeated> shown;
  for (std::size_t i = 0; i < rows.size();) {
    std::size_t period = 1, times = times_of(rows, i, 1);
    while (times < 2 && period < std::min(longest, rows.size() - i))
      times = times_of(rows, i, ++period);
    if (times < 2) period = 1;
    for (std::size_t k = i; k < i + period; ++k) {
      Repeated row = rows[k];
      for (std::size_t again = 1; again < times; ++again) {
        row.last = rows[k + again * period].last;
        row.peak = row.peak || rows[k + again * period].peak;
      }
      shown.push_back(std::move(row));
    }
    i += period * times;
  }
  return shown;
}

// A letter for so many bytes of each kind.
std::string bar_of(const MemorySample& own, Bytes full) {
  constexpr int width = 36;
  constexpr std::array<char, memory_kind_names.size()> letters{'W', 'G', 'O', 'A', 'B'};
  std::string bar;
  double sum = 0;
  for (std::size_t kind = 0; kind < letters.size(); ++kind) {
    sum += own.held[kind].value;
    const auto end = static_cast<std::size_t>(std::lround(width * sum / full.value));
    if (end > bar.size()) bar.append(end - bar.size(), letters[kind]);
  }
  return bar;
}

}  // namespace

std::string pass_text(const MemorySample& own) {
  if (own.pass == MemorySample::Pass::step) return "optimizer's step";
  return fmt::format("{} of layer {} of stage {}, {}, micro-batch {}",
                     memory_pass_names[static_cast<std::size_t>(own.pass)], own.number, own.stage,
                     describe(own.layer), own.micro_batch);
}

Table memory_rows(const MemoryTrace& trace) {
  Table t = columns();
  for (const Group& group : groups_of(trace)) t.rows.push_back(cells_of(group));
  return t;
}

std::string memory_report(const MemoryTrace& trace, Bytes capacity, const ReportStyle& style) {
  if (!trace.known()) {
    return section_title("Memory over the iteration", style) +
           bullet(
               "Not known allocation by allocation: a schedule that splits backward or goes two "
               "ways, stages or replicas with sizes of their own, an encoder, multi-token "
               "prediction, offload, or more layers and micro-batches than are followed.",
               style);
  }
  const MemorySample& peak = trace.samples[trace.peak];
  Table t = columns();
  t.columns.push_back({"", false});
  const Bytes full = max(capacity, peak.allocated);
  const std::vector<Group> groups = groups_of(trace);
  for (Repeated& row : folded(rows_of(groups))) {
    const bool step = row.group->fullest->pass == MemorySample::Pass::step;
    if (!step) {
      row.cells[micro_batch_column] = row.first == row.last
                                          ? std::to_string(row.first)
                                          : fmt::format("{} to {}", row.first, row.last);
    }
    row.cells.push_back(bar_of(*row.group->fullest, full) + (row.peak ? " peak" : ""));
    t.rows.push_back(std::move(row.cells));
  }
  return table_section("Memory over the iteration: what tensors take on the fullest rank, GiB", t,
                       style) +
         bullet(fmt::format("The peak is {} in the {}{}; PyTorch's allocator then holds {} of {}.",
                            format_bytes(peak.allocated), pass_text(peak),
                            peak.op.empty() ? std::string() : fmt::format(", at {}", peak.op),
                            format_bytes(trace.reserved), format_bytes(capacity)),
                style) +
         bullet(fmt::format("W weights, G gradients, O optimizer, A activations, B buffers; the "
                            "bar's width is {}. Contexts of CUDA and NCCL come on top.",
                            format_bytes(full)),
                style);
}

}  // namespace planner
