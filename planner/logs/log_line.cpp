#include "planner/logs/log_line.hpp"

#include <charconv>
#include <chrono>
#include <cmath>

namespace planner {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trimmed(std::string_view text) {
  const auto from = text.find_first_not_of(" \t\r");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t\r") - from + 1);
}

// The number at the start of a text, and how many characters it takes; commas are left out.
struct Read {
  double value;
  std::size_t length;
};
std::optional<Read> leading_number(std::string_view text) {
  std::string digits;
  std::size_t n = 0;
  for (; n < text.size() && n < 40; ++n) {
    const char c = text[n];
    const bool comma = c == ',' && n > 0 && is_digit(text[n - 1]) && n + 3 < text.size() &&
                       is_digit(text[n + 1]) && is_digit(text[n + 2]) && is_digit(text[n + 3]);
    if (comma) continue;
    const bool exponent = (c == 'e' || c == 'E') && n > 0 && is_digit(text[n - 1]) &&
                          n + 1 < text.size() &&
                          (is_digit(text[n + 1]) || text[n + 1] == '-' || text[n + 1] == '+');
    const bool sign =
        (c == '-' || c == '+') && (n == 0 || text[n - 1] == 'e' || text[n - 1] == 'E');
    if (!is_digit(c) && c != '.' && !exponent && !sign) break;
    if (c != '+') digits += c;
  }
  double value = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (fault != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value))
    return {};
  return Read{value, n};
}

// K, M, G, T directly behind a number, and not the first letter of a word or unit.
double scale_of(std::string_view rest) {
  if (rest.empty()) return 1;
  const bool alone = rest.size() == 1 || rest[1] == ' ' || rest[1] == '|' || rest[1] == '\r';
  if (!alone) return 1;
  switch (rest[0]) {
    case 'K': return 1e3;
    case 'M': return 1e6;
    case 'G': return 1e9;
    case 'T': return 1e12;
    default: return 1;
  }
}

}  // namespace

std::string without_colors(std::string_view line) {
  std::string plain;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      constexpr std::size_t longest = 24;  // "ESC[38;2;180;160;100m"
      const auto end = line.substr(i, longest).find('m');
      if (end != std::string_view::npos) {
        i += end;
        continue;
      }
    }
    plain += line[i];
  }
  return plain;
}

std::optional<double> number_after(std::string_view line, std::string_view label) {
  const auto at = line.find(label);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = trimmed(line.substr(at + label.size()));
  const auto number = leading_number(rest);
  if (!number) return {};
  return number->value * scale_of(rest.substr(number->length));
}

std::optional<double> stamp_of(std::string_view line) {
  // "dddd-dd-dd?dd:dd:dd?d": a place a character, d for any digit.
  constexpr std::string_view form = "dddd-dd-dd?dd:dd:dd?d";
  for (std::size_t at = 0; at + form.size() <= line.size(); ++at) {
    const std::string_view text = line.substr(at);
    bool fits = true;
    for (std::size_t i = 0; i < form.size() && fits; ++i)
      fits = form[i] == '?' || (form[i] == 'd' ? is_digit(text[i]) : text[i] == form[i]);
    if (!fits || (text[19] != ',' && text[19] != '.')) continue;
    const auto whole = [&](std::size_t from, std::size_t length) {
      int n = 0;
      std::from_chars(text.data() + from, text.data() + from + length, n);
      return n;
    };
    const std::chrono::year_month_day date{std::chrono::year(whole(0, 4)),
                                           std::chrono::month(static_cast<unsigned>(whole(5, 2))),
                                           std::chrono::day(static_cast<unsigned>(whole(8, 2)))};
    if (!date.ok()) return {};
    double fraction = 0, place = 0.1;
    for (std::size_t i = 20; i < text.size() && is_digit(text[i]); ++i, place /= 10)
      fraction += place * (text[i] - '0');
    const auto days = std::chrono::sys_days(date).time_since_epoch().count();
    return 86400.0 * static_cast<double>(days) + 3600.0 * whole(11, 2) + 60.0 * whole(14, 2) +
           whole(17, 2) + fraction;
  }
  return {};
}

std::optional<DottedRow> dotted_row(std::string_view line) {
  const auto dots = line.find(" ..");
  if (dots == std::string_view::npos) return {};
  const std::string_view before = trimmed(line.substr(0, dots));
  const auto blank = before.find_last_of(" \t]");
  const std::string_view name = blank == std::string_view::npos ? before : before.substr(blank + 1);
  auto from = line.find_first_not_of('.', dots + 1);
  if (from == std::string_view::npos || name.empty()) return {};
  if (line[from] == ':') ++from;
  const std::string_view value = trimmed(line.substr(from));
  if (value.empty()) return {};
  return DottedRow{std::string(name), std::string(value)};
}

std::vector<double> numbers_of(std::string_view list) {
  std::vector<double> numbers;
  for (std::size_t i = 0; i < list.size();) {
    if (list[i] == '(' || list[i] == '[' || list[i] == ')' || list[i] == ']' || list[i] == ',' ||
        list[i] == ' ') {
      ++i;
      continue;
    }
    const auto number = leading_number(list.substr(i));
    if (!number) return {};
    numbers.push_back(number->value);
    i += number->length;
  }
  return numbers;
}

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const auto bar = line.find('|');
    cells.push_back(trimmed(line.substr(0, bar)));
    if (bar == std::string_view::npos) return cells;
    line.remove_prefix(bar + 1);
  }
}

}  // namespace planner
