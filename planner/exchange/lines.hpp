// The lines of a text: what they begin with, by which files are told apart, and documents in
// scripts.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace planner {

bool has_line(const std::string& text, std::string_view begin);

// The here-document that a script brings behind <<'WORD', after as many empty lines as stand before
// it, so that its places are the script's; any other text as it is.
std::string here_document(const std::string& text, std::string_view word);
bool holds_document(const std::string& text, std::string_view word);

// What `cat <<WORD` and the lines after it print, up to a line WORD.
struct PrintedDocument {
  std::string text;    // quotes in it are themselves
  bool plain = false;  // quotes around WORD: variables stand for nothing
};
std::optional<PrintedDocument> printed_by_cat(const std::string& command);

}  // namespace planner
