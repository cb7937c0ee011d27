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

namespace {

// Samples of a chart's column: an action that is shorter still counts by its length.
constexpr int samples = 64;

// What a rank does at each sample of the time, later events over earlier ones; what begins behind
// `end` is cut off.
void paint(std::string& row, const Event& e, Seconds end, std::size_t shortest) {
  const double scale = static_cast<double>(row.size()) / end.value;
  const auto from = static_cast<std::size_t>(e.start.value * scale);
  if (from >= row.size()) return;
  const auto to = std::min(
      row.size(), std::max(from + shortest, static_cast<std::size_t>(e.end.value * scale)));
  std::fill(row.begin() + static_cast<std::ptrdiff_t>(from),
            row.begin() + static_cast<std::ptrdiff_t>(to), letter_of(e));
}

// One letter for each column: of those in it the one that lags most behind its share of the time so
// far. So a row has of each letter as many columns as its time takes, however short the actions.
std::string condensed(const std::string& fine) {
  std::array<int, 256> behind{};  // in samples
  std::string row;
  for (std::size_t at = 0; at < fine.size(); at += samples) {
    const std::string_view column = std::string_view(fine).substr(at, samples);
    for (const char letter : column) ++behind[static_cast<unsigned char>(letter)];
    const char shown = *std::ranges::max_element(column, [&](char a, char b) {
      return behind[static_cast<unsigned char>(a)] < behind[static_cast<unsigned char>(b)];
    });
    behind[static_cast<unsigned char>(shown)] -= samples;
    row += shown;
  }
  return row;
}

bool is_brief(const Event& e) {
  return e.stream == Stream::data_parallel || e.stream == Stream::optimizer;
}

}  // namespace

std::string to_chart(const Timeline& timeline, int columns, Seconds end) {
  const auto width = static_cast<std::size_t>(columns);
  std::vector<std::string> fine(static_cast<std::size_t>(timeline.ranks),
                                std::string(width * samples, '.'));
  const bool drawn = end > Seconds(0);
  const auto each = [&](auto draw) {
    for (const Event& e : timeline.events)
      if (drawn && e.stream != Stream::pipeline_transfer) draw(e, static_cast<std::size_t>(e.rank));
  };
  each([&](const Event& e, std::size_t rank) { paint(fine[rank], e, end, 1); });
  std::vector<std::string> rows;
  for (const std::string& row : fine) rows.push_back(condensed(row));
  // What happens once in an iteration is seen, however short.
  each([&](const Event& e, std::size_t rank) {
    if (is_brief(e) && (e.end - e.start) * static_cast<double>(columns) < end)
      paint(rows[rank], e, end, 1);
  });
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) text += fmt::format("{:>4} |{}|\n", r, rows[r]);
  return text;
}

}  // namespace costmodel
