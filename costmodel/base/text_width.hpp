// Columns that text takes on a terminal, and lines broken so that they fit into so many.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace costmodel {

inline constexpr std::size_t unlimited_width = std::numeric_limits<std::size_t>::max();

// Of UTF-8 text: each character takes one column, colours ("\033[1m") none.
std::size_t display_width(std::string_view text);

// The words of a line: what blanks separate, but for a number and its "%", and a size and its name
// ("t 8", "ZeRO 1").
std::vector<std::string> unbroken_words(std::string_view line);

// Lines of more than `width` columns are broken between words, and go on `hanging` columns right of
// where they began. Only a word that is longer than the line is broken in itself, behind a mark
// ("/", "-") if it has one.
std::string wrapped(std::string_view text, std::size_t width, std::size_t hanging = 2);

}  // namespace costmodel
