// Text of unknown origin in what the program prints. Titles, names, paths and pieces of a user's
// file may hold terminal escapes, line ends, markup or bytes that are not UTF-8: every output that
// holds such text passes one of these functions, and none of them throws.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace costmodel {

// For a terminal: one line of valid UTF-8 without control characters. Control characters become
// "\n", "\t", "\x1b"; bytes that are not UTF-8 "\xff"; characters that are invisible or turn the
// direction of writing "<U+202E>". All other text, in any script, stays as it is.
std::string printable(std::string_view text);

// The same with line ends and tabs kept, for text of several lines.
std::string printable_lines(std::string_view text);

// Text of at most `most` characters: both ends with "..." between them, never half a character.
std::string shortened(std::string_view text, std::size_t most = 60);

// A piece of a user's input in a message: 'printable and shortened'.
std::string quote(std::string_view text);

// Most bytes of a message.
inline constexpr std::size_t longest_message = 2000;

// A message: printable, and cut in the middle when it would be longer than longest_message.
std::string message_text(std::string_view text);

// For a line or a table cell of Markdown: printable, and a title can make no table, emphasis, code,
// link or HTML. What means nothing to Markdown, such as the '_' in micro_batch, stays readable.
std::string markdown_text(std::string_view text);

// The same for a sentence of the program, whose `code` stays code.
std::string markdown_sentence(std::string_view text);

// One field of CSV (RFC 4180), printable. A spreadsheet runs what begins with = + - @: such a field
// gets a leading apostrophe (OWASP, "CSV Injection"), unless it is a number or a lone dash.
std::string csv_field(std::string_view text);

// For text and attributes of HTML and XML, printable.
std::string html_text(std::string_view text);

// A string of JSON with its quotes. What is not UTF-8 becomes U+FFFD.
std::string json_string(std::string_view text);

// JSON, or YAML that has them in double quotes only: characters that are invisible or turn the
// direction of writing become \u escapes, which read back as the same text.
std::string without_hidden(std::string_view quoted);

// One word of bash: bare, in '...', or in $'...' when it is not printable.
std::string shell_word(std::string_view word);

}  // namespace costmodel
