#include "costmodel/schedule/trace_slices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <tuple>

namespace costmodel {

Nanoseconds nanoseconds(Seconds time) {
  constexpr double most = 4e18;
  return std::isnan(time.value) ? 0 : std::llround(std::clamp(time.value * 1e9, -most, most));
}

std::string as_microseconds(Nanoseconds time) {
  const Nanoseconds size = std::abs(time);
  return fmt::format("{}{}.{:03}", time < 0 ? "-" : "", size / 1000, size % 1000);
}

namespace {

// Each on the first lane of its stream that is free. Those of a rank, sorted by stream and start.
void place_on_lanes(std::vector<Slice>& slices) {
  std::vector<Nanoseconds> busy_until;
  const Event* before = nullptr;
  for (Slice& slice : slices) {
    if (before == nullptr || before->rank != slice.event->rank ||
        before->stream != slice.event->stream)
      busy_until.clear();
    before = slice.event;
    const auto free = std::ranges::find_if(
        busy_until, [&slice](Nanoseconds busy) { return busy <= slice.start; });
    slice.lane = static_cast<int>(free - busy_until.begin());
    if (free == busy_until.end()) {
      busy_until.push_back(slice.end);
    } else {
      *free = slice.end;
    }
  }
}

// "0F3", or a cell's "0F3+7B2+7W2".
void read_cell(std::string_view name, Slice& slice) {
  std::vector<Action> cell;
  while (!name.empty()) {
    const std::size_t end = std::min(name.find('+'), name.size());
    const auto action = parse_action(name.substr(0, end));
    if (!action) return;
    cell.push_back(*action);
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  if (cell.empty()) return;
  slice.action = cell.front();
  slice.beside.assign(cell.begin() + 1, cell.end());
}

}  // namespace

std::vector<Action> Slice::actions() const {
  std::vector<Action> all;
  if (action) all.push_back(*action);
  all.insert(all.end(), beside.begin(), beside.end());
  return all;
}

std::vector<Slice> slices_of(const Timeline& timeline, int ranks) {
  std::vector<Slice> slices;
  for (const Event& event : timeline.events) {
    if (event.rank >= ranks) continue;
    const Nanoseconds start = nanoseconds(event.start);
    Slice& slice = slices.emplace_back();
    slice.event = &event;
    slice.start = start;
    slice.end = std::max(start, nanoseconds(event.end));
    read_cell(event.name, slice);
  }
  std::ranges::stable_sort(slices, [](const Slice& a, const Slice& b) {
    return std::tuple(a.event->rank, a.event->stream, a.start, a.end) <
           std::tuple(b.event->rank, b.event->stream, b.start, b.end);
  });
  place_on_lanes(slices);
  return slices;
}

}  // namespace costmodel
