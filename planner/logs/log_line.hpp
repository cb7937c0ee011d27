// Pieces of a line of a training log, whatever program wrote it. Nothing here throws: a log is what
// somebody pasted, and a line that does not read is passed over.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planner {

inline bool holds(std::string_view line, std::string_view what) {
  return line.find(what) != std::string_view::npos;
}

inline constexpr double mebi = 1024.0 * 1024, gibi = 1024 * mebi;

// The line without the sequences that colour a terminal (torchtitan writes them).
std::string without_colors(std::string_view line);

// The number that follows `label` and blanks: "10,050" with commas for thousands, "11.5K" with K,
// M, G or T for powers of a thousand (nanotron), "9.02GB". Empty where there is no label or no
// number behind it.
std::optional<double> number_after(std::string_view line, std::string_view label);

// The seconds of a stamp "2026-02-24 19:46:17,508" (or with a dot, or a T) from any fixed day on.
// Empty where the line has none or it has no fraction of a second: such a stamp is too coarse.
std::optional<double> stamp_of(std::string_view line);

// A row of a table that joins names and values by dots: "  micro_batch_size ........ 2",
// "    forward-compute ......: (584.92, 635.66)".
struct DottedRow {
  std::string name, value;
};
std::optional<DottedRow> dotted_row(std::string_view line);

// The numbers of "(584.92, 635.66)", of "635.66", of "[2, 8, 4]"; empty when there are others
// signs.
std::vector<double> numbers_of(std::string_view list);

// The cells of a line "name: 1.5 | other name: 2" between bars, without blanks at their ends.
std::vector<std::string_view> cells_of(std::string_view line);

}  // namespace planner
