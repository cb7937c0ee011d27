#include "costmodel/base/escape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <utility>
#include <vector>

namespace costmodel {

namespace {

// One character of UTF-8, or one byte that belongs to none.
struct Character {
  std::uint32_t point = 0;
  std::string_view bytes;
  bool valid = true;
};

// Refuses overlong forms, surrogates and what lies above U+10FFFF (RFC 3629).
Character character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {first, text.substr(at, 1)};
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  const Character broken{first, text.substr(at, 1), false};
  if (first < 0xC2 || first > 0xF4 || at + size > text.size()) return broken;
  std::uint32_t point = first & (0xFFU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return broken;
    point = point << 6U | (byte(i) & 0x3FU);
  }
  constexpr std::array<std::uint32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
  if (point < least[size] || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return broken;
  return {point, text.substr(at, size)};
}

template <class Each>
void for_each_character(std::string_view text, const Each& each) {
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    each(c);
    at += c.bytes.size();
  }
}

bool is_control(std::uint32_t point) { return point < 0x20 || point == 0x7F; }

// C1 controls, bidirectional controls (Unicode TR 9), zero widths, line and paragraph separators,
// interlinear annotations and tags. The joiners of emoji and Persian (U+200C, U+200D) are not among
// them.
bool is_hidden(std::uint32_t point) {
  using Range = std::pair<std::uint32_t, std::uint32_t>;
  constexpr std::array<Range, 10> ranges{{{0x80, 0x9F},
                                          {0x061C, 0x061C},
                                          {0x200B, 0x200B},
                                          {0x200E, 0x200F},
                                          {0x2028, 0x202E},
                                          {0x2060, 0x2064},
                                          {0x2066, 0x2069},
                                          {0xFEFF, 0xFEFF},
                                          {0xFFF9, 0xFFFB},
                                          {0xE0000, 0xE007F}}};
  return std::ranges::any_of(ranges, [point](const Range& range) {
    return point >= range.first && point <= range.second;
  });
}

std::string shown(const Character& c) {
  if (!c.valid) return fmt::format("\\x{:02x}", c.point);
  if (is_hidden(c.point)) return fmt::format("<U+{:04X}>", c.point);
  if (!is_control(c.point)) return std::string(c.bytes);
  switch (c.point) {
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    default: return fmt::format("\\x{:02x}", c.point);
  }
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_character(text, [&out](const Character& c) { out += shown(c); });
  return out;
}

std::string printable_lines(std::string_view text) {
  std::string out;
  for_each_character(text, [&out](const Character& c) {
    out += c.point == '\n' || c.point == '\t' ? std::string(c.bytes) : shown(c);
  });
  return out;
}

std::string shortened(std::string_view text, std::size_t most) {
  constexpr std::string_view gap = "...";
  std::vector<std::size_t> starts;
  for_each_character(text, [&](const Character& c) {
    starts.push_back(static_cast<std::size_t>(c.bytes.data() - text.data()));
  });
  if (starts.size() <= most) return std::string(text);
  const std::size_t kept = most - std::min(most, gap.size());
  const std::size_t head = (kept + 1) / 2, tail = kept / 2;
  std::string out(text.substr(0, starts[head]));
  out += gap;
  if (tail > 0) out += text.substr(starts[starts.size() - tail]);
  return out;
}

std::string quote(std::string_view text) { return "'" + shortened(printable(text)) + "'"; }

std::string message_text(std::string_view text) {
  std::string message = printable(text);
  if (message.size() <= longest_message) return message;
  return shortened(message, longest_message / 4);  // a character has four bytes at most
}

namespace {

bool is_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
         (c >= '{' && c <= '~');
}

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// What stands in Markdown for one character between two neighbours; 0 is the end or the beginning.
// The rules are those of CommonMark 0.31 and of GitHub's tables, strikethrough and bare links.
std::string markdown_character(char before, char c, char after, bool code) {
  std::string literal = std::string("\\") + c;
  std::string plain(1, c);
  switch (c) {
    case '|': return literal;
    case '`': return code ? plain : literal;
    case '\\': return after == 0 || is_punctuation(after) ? literal : plain;
    case '*': return before == ' ' && (after == ' ' || after == 0) ? plain : literal;
    case '~': return after == ' ' || after == 0 ? plain : literal;
    case '_': return is_word(before) && is_word(after) ? plain : literal;
    case '(':
    case '[': return before == ']' ? literal : plain;
    case ']': return after == '(' || after == '[' || after == ':' ? literal : plain;
    case '&': return is_word(after) || after == '#' ? "&amp;" : plain;
    case '<': return after == ' ' || after == '=' || after == 0 ? plain : "&lt;";
    case '>': return before == ' ' || before == '-' ? plain : "&gt;";
    default: return plain;
  }
}

// GitHub links "scheme://..." and "www...." wherever they stand.
bool makes_link(std::string_view text, std::size_t at) {
  return text.substr(at).starts_with("://") ||
         (text[at] == '.' && text.substr(0, at).ends_with("www"));
}

std::string markdown(std::string_view raw, bool code) {
  const std::string text = printable(raw);
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char before = i > 0 ? text[i - 1] : '\0';
    const char after = i + 1 < text.size() ? text[i + 1] : '\0';
    if (makes_link(text, i)) out += '\\';
    out += markdown_character(before, text[i], after, code);
  }
  return out;
}

}  // namespace

std::string markdown_text(std::string_view text) { return markdown(text, false); }

std::string markdown_sentence(std::string_view text) { return markdown(text, true); }

namespace {

bool is_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  return status == std::errc() && end == text.data() + text.size();
}

// The four signs, and their forms of full width (U+FF1D, U+FF0B, U+FF0D, U+FF20).
bool is_formula(std::string_view text) {
  constexpr std::array<std::string_view, 8> signs{"=",      "+",      "-",      "@",
                                                  "\uFF1D", "\uFF0B", "\uFF0D", "\uFF20"};
  const bool signed_text =
      std::ranges::any_of(signs, [text](std::string_view sign) { return text.starts_with(sign); });
  return signed_text && text != "-" && !is_number(text);
}

std::string replaced(std::string_view text, char what, std::string_view by) {
  std::string out;
  for (const char c : text) c == what ? out += by : out += c;
  return out;
}

}  // namespace

std::string csv_field(std::string_view text) {
  std::string field = (is_formula(text) ? "'" : "") + printable(text);
  if (field.find_first_of(",\"") == std::string::npos) return field;
  return "\"" + replaced(field, '"', "\"\"") + "\"";
}

std::string html_text(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

namespace {

std::string json_escape(std::uint32_t point) { return fmt::format("\\u{:04x}", point); }

// Hidden characters above U+FFFF stay: JSON and YAML have no escape in common for them.
bool is_hidden_in_quotes(const Character& c) {
  return c.valid && (c.point == 0x7F || (is_hidden(c.point) && c.point <= 0xFFFF));
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for_each_character(text, [&out](const Character& c) {
    if (!c.valid) {
      out += "\uFFFD";
    } else if (c.point == '"' || c.point == '\\') {
      out += fmt::format("\\{}", c.bytes);
    } else {
      out +=
          is_control(c.point) || is_hidden(c.point) ? json_escape(c.point) : std::string(c.bytes);
    }
  });
  return out + "\"";
}

std::string without_hidden(std::string_view quoted) {
  std::string out;
  out.reserve(quoted.size());
  for_each_character(quoted, [&out](const Character& c) {
    if (is_hidden_in_quotes(c)) {
      out += json_escape(c.point);
    } else {
      out += c.bytes;
    }
  });
  return out;
}

std::string shell_word(std::string_view word) {
  constexpr std::string_view harmless =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+.,:/@%";
  if (!word.empty() && word.find_first_not_of(harmless) == std::string_view::npos)
    return std::string(word);
  if (printable(word) == word) return "'" + replaced(word, '\'', "'\\''") + "'";
  std::string out = "$'";
  for_each_character(word, [&out](const Character& c) {
    const bool plain = c.valid && !is_control(c.point) && !is_hidden(c.point);
    if (c.point == '\'' || c.point == '\\') out += '\\';
    if (plain) {
      out += c.bytes;
    } else {
      for (const char byte : c.bytes)
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    }
  });
  return out + "'";
}

}  // namespace costmodel
