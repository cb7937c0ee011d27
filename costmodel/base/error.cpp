#include "costmodel/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/letter_case.hpp"

namespace costmodel {

Mark mark_of_argument(const std::string& flag, const std::string& argument) {
  std::string place = flag + " " + argument;
  place.erase(place.find_last_not_of(" :") + 1);
  return {std::move(place), 0, 0};
}

std::string to_string(const Mark& mark) {
  if (mark.file.empty()) return "";
  if (mark.line == 0) return mark.file;
  return fmt::format("{}:{}:{}", mark.file, mark.line, mark.column);
}

namespace {

// Longest place of a file in a message, in characters: with it there is room for what is wrong.
constexpr std::size_t longest_place = 300;

std::string message(Mark where, const std::string& wrong, const std::string& remedy) {
  where.file = shortened(printable(where.file), longest_place);
  std::string text = to_string(where);
  if (!text.empty()) text += ": ";
  text += wrong;
  if (!remedy.empty()) text += "; " + remedy;
  return message_text(text);
}

std::size_t difference(std::size_t a, std::size_t b) { return a > b ? a - b : b - a; }

// Edit distance: insertions, deletions, replacements and swaps of neighbouring letters ("modle").
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last, last(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> row(b.size() + 1, i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({substituted, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = std::move(last);
    last = std::move(row);
  }
  return last[b.size()];
}

}  // namespace

ConfigError::ConfigError(const Mark& where, const std::string& wrong, const std::string& remedy)
    : std::runtime_error(message(where, wrong, remedy)),
      parts_(std::make_shared<const Parts>(Parts{where, wrong, remedy})) {}

void check_failed(const char* condition, const char* file, int line) {
  throw InternalError(fmt::format(
      "internal fault: '{}' does not hold at {}:{}; please report it with the command line",
      condition, file, line));
}

std::string nearest_name(const std::string& misspelt, const std::vector<std::string>& known) {
  // What somebody began to write, where one name alone begins so: "--seq" for "--sequence".
  const auto begun = [&](const std::string& name) { return name.starts_with(misspelt); };
  constexpr std::size_t letters = 3;
  if (misspelt.size() > letters && std::ranges::count_if(known, begun) == 1)
    return *std::ranges::find_if(known, begun);
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(1, misspelt.size() / 3) + 1;
  for (const auto& name : known) {
    if (difference(misspelt.size(), name.size()) >= best_distance) continue;
    const std::size_t distance = edit_distance(lower_case(misspelt), lower_case(name));
    if (distance < best_distance) {
      best_distance = distance;
      best = name;
    }
  }
  if (!best.empty()) return best;
  for (const auto& name :
       known) {  // "llama3" for "llama-3-8b" is far by edits but near by beginning
    if (misspelt.size() >= 4 && name.rfind(misspelt.substr(0, misspelt.size() - 1), 0) == 0)
      return name;
  }
  if (misspelt.size() < 3) return best;
  for (const auto& name : known) {  // "rtx-4090" is in "pcie-8x-rtx-4090": the shortest of those
    const bool shorter = best.empty() || name.size() < best.size();
    if (shorter && name.find(misspelt) != std::string::npos) best = name;
  }
  return best;
}

bool is_misspelling(const std::string& word, const std::string& name) {
  const std::size_t most = std::clamp<std::size_t>(name.size() / 4, 1, 2);
  return word != name && difference(word.size(), name.size()) <= most &&
         edit_distance(word, name) <= most;
}

std::string known_names(const std::string& misspelt, const std::vector<std::string>& known,
                        std::size_t most) {
  std::string text;
  const std::string near = nearest_name(misspelt, known);
  if (!near.empty()) text += fmt::format("did you mean {}? ", quote(near));
  text += "known: ";
  for (std::size_t i = 0; i < std::min(most, known.size()); ++i)
    text += (i ? ", " : "") + shortened(printable(known[i]));
  if (known.size() > most) text += fmt::format(" and {} more", known.size() - most);
  return text;
}

}  // namespace costmodel
