#include "costmodel/schedule/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace costmodel {

std::string_view name_of(Stream stream) {
  static constexpr std::array<std::string_view, stream_count> names{"compute", "pipeline transfer",
                                                                    "data parallel", "optimizer"};
  return names[static_cast<std::size_t>(stream)];
}

Seconds Timeline::end() const {
  Seconds last;
  for (const Event& event : events) last = max(last, event.end);
  return last;
}

double bubble_fraction(Seconds pipeline, Seconds slowest) {
  return slowest.value > 0 ? std::max(0.0, (pipeline - slowest) / slowest) : 0;
}

double bubble_fraction(const Timeline& timeline, bool apart) {
  struct Rank {
    Seconds start{std::numeric_limits<double>::infinity()}, end, busy;
  };
  std::vector<Rank> ranks(static_cast<std::size_t>(timeline.ranks));
  for (const Event& event : timeline.events) {
    if (event.stream != Stream::compute) continue;
    Rank& rank = ranks[static_cast<std::size_t>(event.rank)];
    rank.start = min(rank.start, event.start);
    rank.end = max(rank.end, event.end);
    rank.busy += event.end - event.start;
  }
  Rank all;
  Seconds longest;
  for (const Rank& rank : ranks) {
    all = {min(all.start, rank.start), max(all.end, rank.end), max(all.busy, rank.busy)};
    longest = max(longest, rank.end - rank.start);
  }
  return bubble_fraction(apart ? longest : all.end - all.start, all.busy);
}

std::string to_text(const Timeline& timeline) {
  std::string text;
  for (const Event& e : timeline.events) {
    text += fmt::format("rank {} | {:.6f} {:.6f} | {} | {}\n", e.rank, e.start.value, e.end.value,
                        name_of(e.stream), e.name);
  }
  return text;
}

namespace {

char letter_of(const Event& event) {
  if (event.stream == Stream::data_parallel) return 'd';
  if (event.stream == Stream::optimizer) return 'o';
  const auto has = [&](char word) { return event.name.find(word) != std::string::npos; };
  if (has('F')) return has('B') ? 'x' : 'f';
  return has('W') && !has('B') ? 'w' : 'B';
}

}  // namespace

std::string to_chart(const Timeline& timeline, int columns) {
  return to_chart(timeline, columns, timeline.end());
}

std::string to_chart(const Timeline& timeline, int columns, Seconds end) {
  const double total = end.value;
  std::vector<std::string> rows(static_cast<std::size_t>(timeline.ranks),
                                std::string(static_cast<std::size_t>(columns), '.'));
  for (const Event& e : timeline.events) {
    if (e.stream == Stream::pipeline_transfer || total <= 0) continue;
    const auto from = static_cast<std::size_t>(e.start.value / total * columns);
    const auto to =
        std::min(static_cast<std::size_t>(columns),
                 std::max(from + 1, static_cast<std::size_t>(e.end.value / total * columns)));
    std::fill(rows[static_cast<std::size_t>(e.rank)].begin() + static_cast<std::ptrdiff_t>(from),
              rows[static_cast<std::size_t>(e.rank)].begin() + static_cast<std::ptrdiff_t>(to),
              letter_of(e));
  }
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) text += fmt::format("{:>4} |{}|\n", r, rows[r]);
  return text;
}

}  // namespace costmodel
