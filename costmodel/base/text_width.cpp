#include "costmodel/base/text_width.hpp"

#include <algorithm>
#include <cctype>

namespace costmodel {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

// Bytes of the colour that begins at `at`, or 0.
std::size_t colour_at(std::string_view text, std::size_t at) {
  if (text[at] != '\033') return 0;
  const std::size_t end = text.find('m', at);
  return end == std::string_view::npos ? 0 : end + 1 - at;
}

// The article is none.
bool is_letter(std::string_view word) {
  return word.size() == 1 && word != "a" && std::isalpha(static_cast<unsigned char>(word[0])) != 0;
}

// "ZeRO 1", "stage 12".
bool is_size(std::string_view name, std::string_view number) {
  constexpr std::size_t most_digits = 3;
  return number.size() <= most_digits && std::ranges::all_of(number, is_digit) &&
         std::ranges::none_of(name, is_digit);
}

// How many bytes of a word that is wider than `columns` stand on the first line.
std::size_t broken_at(std::string_view word, std::size_t columns) {
  std::size_t end = 0, shown = 0;
  for (; end < word.size(); ++end)
    if (begins_character(word[end]) && ++shown > columns) break;
  const std::size_t mark = word.substr(0, end).find_last_of("/,;:=-_.");
  return mark == std::string_view::npos || mark < end / 2 ? end : mark + 1;
}

class Lines {
 public:
  Lines(std::size_t width, std::size_t indent, std::size_t hanging)
      : width_(width), margin_(std::min(indent + hanging, width / 2)), column_(indent) {
    text_.assign(indent, ' ');
  }

  void add(std::string_view word, std::size_t blanks) {
    const std::size_t wide = display_width(word);
    if (begun_ && column_ + blanks + wide > width_) {
      next_line(wide);
    } else {
      text_.append(blanks, ' ');
      column_ += blanks;
    }
    while (column_ + display_width(word) > width_) {
      const std::size_t cut = broken_at(word, width_ - column_);
      text_ += word.substr(0, cut);
      word.remove_prefix(cut);
      next_line(display_width(word));
    }
    text_ += word;
    column_ += display_width(word);
    begun_ = true;
  }

  const std::string& text() const { return text_; }

 private:
  void next_line(std::size_t word) {
    column_ = std::min(margin_, width_ - std::min(width_, word));
    text_ += "\n" + std::string(column_, ' ');
  }

  std::size_t width_, margin_, column_;
  bool begun_ = false;
  std::string text_;
};

std::string wrapped_line(std::string_view line, std::size_t width, std::size_t hanging) {
  if (display_width(line) <= width) return std::string(line);
  const std::size_t indent = line.find_first_not_of(' ');
  if (indent == std::string_view::npos) return "";
  Lines lines(width, std::min(indent, width / 2), hanging);
  std::size_t at = indent;
  for (const std::string& word : unbroken_words(line)) {
    const std::size_t begin = line.find(word, at);
    lines.add(word, begin - at);
    at = begin + word.size();
  }
  return lines.text();
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t colour = colour_at(text, at); colour > 0) {
      at += colour;
    } else {
      columns += begins_character(text[at++]) ? 1 : 0;
    }
  }
  return columns;
}

std::vector<std::string> unbroken_words(std::string_view line) {
  std::vector<std::string> words;
  std::string_view before;
  for (std::size_t at = line.find_first_not_of(' '); at < line.size();) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    const std::string_view word = line.substr(at, end - at);
    const bool next = !words.empty() && line[at - 2] != ' ';  // one blank between
    if (next && (word.front() == '%' || is_letter(before) || is_size(before, word))) {
      words.back() += " " + std::string(word);
    } else {
      words.emplace_back(word);
    }
    before = word;
    at = line.find_first_not_of(' ', end);
  }
  return words;
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t hanging) {
  if (width == unlimited_width) return std::string(text);
  std::string all;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    all += wrapped_line(text.substr(at, end - at), width, hanging);
    if (end < text.size()) all += '\n';
    at = end + 1;
  }
  return all;
}

}  // namespace costmodel
