// The lines of a text: what they begin with, by which files are told apart, and documents in
// scripts.
#pragma once

#include <string>
#include <string_view>

namespace planner {

bool has_line(const std::string& text, std::string_view begin);

// The here-document that a script brings behind <<'WORD', after as many empty lines as stand before
// it, so that its places are the script's; any other text as it is.
std::string here_document(const std::string& text, std::string_view word);
bool holds_document(const std::string& text, std::string_view word);

}  // namespace planner
