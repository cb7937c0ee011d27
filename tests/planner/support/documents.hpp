// The pages of the tree (README.md, docs/*.md and every folder's README.md): their blocks of code,
// the commands in them, and excerpts of what a command prints.
//
// A block of ```console holds commands behind "$ ", each with what it prints below it; one of
// ```sh, and one that is indented by four blanks and begins with a command, holds commands alone.
// Any other fenced block whose first line is
// "# NAME.EXT" is a file that the page's commands find: as it is if it is YAML, else from its
// second line on.
#pragma once

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "tests/golden.hpp"

namespace documents {

using Lines = std::vector<std::string>;

inline std::string path_of(const std::string& page) { return SHARDPLAN_SOURCE_DIR "/" + page; }

inline Lines read(const std::string& page) {
  std::ifstream in(path_of(page));
  return golden::lines_of({std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()});
}

inline void write(const std::string& page, const Lines& lines) {
  std::ofstream out(path_of(page));
  for (const auto& line : lines) out << line << '\n';
}

// Relative to the root, README.md first, the others in order.
inline std::vector<std::string> all() {
  namespace fs = std::filesystem;
  std::vector<std::string> found;
  const fs::path root = SHARDPLAN_SOURCE_DIR;
  for (auto at = fs::recursive_directory_iterator(root); at != fs::recursive_directory_iterator();
       ++at) {
    const std::string name = at->path().filename().string();
    if (name.starts_with('.') || name == "build" || name == "fixtures") {
      at.disable_recursion_pending();
    } else if (name == "README.md" || at->path().parent_path() == root / "docs") {
      if (name.ends_with(".md")) found.push_back(fs::relative(at->path(), root).string());
    }
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::pair(a != "README.md", a) < std::pair(b != "README.md", b);
  });
  return found;
}

// Lines [first, last) of a page, without the fences.
struct Block {
  std::string kind;  // the word behind the fence
  std::size_t first = 0, last = 0;
};

inline bool is_indented_command(const std::string& line) {
  static const std::regex command("    (\\$ )?(scripts/)?shardplan .*");
  return std::regex_match(line, command);
}

inline std::vector<Block> blocks_of(const Lines& page) {
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < page.size(); ++i) {
    Block block{.first = i};
    if (page[i].starts_with("```")) {
      block.kind = page[i].substr(3);
      block.first = ++i;
      while (i < page.size() && !page[i].starts_with("```")) ++i;
    } else if (is_indented_command(page[i])) {
      block.kind = "sh";
      while (i < page.size() && page[i].starts_with("    ")) ++i;
    } else {
      continue;
    }
    block.last = i;
    blocks.push_back(block);
  }
  return blocks;
}

// A command of a block: its text, lines joined that end in a backslash, and the lines [first, last)
// of what it prints.
struct Command {
  std::string text;
  std::size_t first = 0, last = 0;
};

inline std::string without_prompt(const std::string& line) {
  const std::size_t from = line.find_first_not_of(' ');
  const std::string text = from == std::string::npos ? "" : line.substr(from);
  return text.starts_with("$ ") ? text.substr(2) : text;
}

// Moves `i` behind the command that begins there.
inline std::string joined_command(const Lines& page, std::size_t& i) {
  std::string text = without_prompt(page[i++]);
  while (text.ends_with('\\'))
    text = text.substr(0, text.size() - 1) + without_prompt(page.at(i++));
  return text;
}

inline std::vector<Command> commands_of(const Lines& page, const Block& block) {
  std::vector<Command> commands;
  const bool console = block.kind == "console";
  if (!console && block.kind != "sh") return commands;
  for (std::size_t i = block.first; i < block.last;) {
    const std::string line = without_prompt(page[i]);
    if (console ? !page[i].starts_with("$ ") : line.empty() || line.starts_with('#')) {
      ++i;
      continue;
    }
    Command command{.text = joined_command(page, i)};
    command.first = i;
    while (console && i < block.last && !page[i].starts_with("$ ")) ++i;
    command.last = i;
    commands.push_back(command);
  }
  return commands;
}

// The file that a block is, or "" for its name.
inline std::string file_name_of(const Lines& page, const Block& block) {
  static const std::regex head("# ([a-z0-9_-]+\\.[a-z]+)");
  std::smatch found;
  if (block.kind == "console" || block.kind == "sh" || block.first == block.last) return "";
  return std::regex_match(page[block.first], found, head) ? found[1].str() : "";
}

inline std::string file_text_of(const Lines& page, const Block& block) {
  const bool yaml = page[block.first].ends_with(".yaml");
  std::string text;
  for (std::size_t i = block.first + (yaml ? 0 : 1); i < block.last; ++i) text += page[i] + "\n";
  return text;
}

// The seconds that a search takes are the machine's.
inline std::string masked(const std::string& line) {
  static const std::regex seconds("valid plans in [0-9.e+-]+ (us|ms|s):");
  return std::regex_replace(line, seconds, "valid plans in TIME:");
}

inline bool is_gap(const std::string& line) { return without_prompt(line) == "..."; }

namespace detail {

// Parts of an excerpt, which "..." keeps apart; the first begins, and the last ends, what is
// printed.
inline std::vector<Lines> parts_of(const Lines& shown) {
  std::vector<Lines> parts(1);
  for (const auto& line : shown) {
    if (is_gap(line)) {
      parts.emplace_back();
    } else {
      parts.back().push_back(line);
    }
  }
  return parts;
}

// A line that ends in " ..." shows how a longer one begins.
inline bool shows(const std::string& shown, const std::string& real) {
  const std::string text = masked(shown);
  if (!text.ends_with(" ...")) return text == masked(real);
  return masked(real).starts_with(text.substr(0, text.size() - 4));
}

// As much of a line as was shown of its like, up to the end of a word.
inline std::string cut_as(const std::string& shown, const std::string& real) {
  if (!shown.ends_with(" ...") || real.size() < shown.size()) return real;
  return real.substr(0, real.find_last_of(' ', shown.size() - 4)) + " ...";
}

inline bool stands_at(const Lines& part, const Lines& real, std::size_t at) {
  if (at + part.size() > real.size()) return false;
  for (std::size_t i = 0; i < part.size(); ++i)
    if (!shows(part[i], real[at + i])) return false;
  return true;
}

// What of a line stays when its figures change.
inline std::string letters_of(const std::string& line) {
  std::string letters;
  for (const char c : line)
    if (std::isalpha(static_cast<unsigned char>(c))) letters += c;
  return letters;
}

inline std::string first_word_of(const std::string& line) {
  const std::string text = without_prompt(line);
  return letters_of(text.substr(0, text.find(' ')));
}

// How alike two lines are that show the same with other figures.
inline int likeness(const std::string& shown, const std::string& real) {
  const std::string word = first_word_of(shown);
  const bool same_word = !word.empty() && word == first_word_of(real);
  return (same_word ? 1 : 0) + (letters_of(shown) == letters_of(cut_as(shown, real)) ? 2 : 0);
}

// Where the part's lines have most of their like; none: nowhere.
inline std::optional<std::size_t> likest(const Lines& part, const Lines& real, std::size_t from) {
  std::optional<std::size_t> best;
  int most = 0;
  for (std::size_t at = from; at + part.size() <= real.size(); ++at) {
    int like = 0;
    for (std::size_t i = 0; i < part.size(); ++i) like += likeness(part[i], real[at + i]);
    if (like > most) best = at, most = like;
  }
  return best;
}

}  // namespace detail

// The first part of an excerpt that is not printed, or not where it has to be; none: `shown` is
// what was printed, but for what "..." stands for.
inline std::optional<Lines> not_printed(const Lines& shown, const Lines& real) {
  const auto parts = detail::parts_of(shown);
  if (parts.size() == 1 && shown.size() != real.size()) return shown;
  std::size_t at = 0;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    if (k > 0 && k + 1 == parts.size() && at + parts[k].size() <= real.size())
      at = real.size() - parts[k].size();
    while (k > 0 && at < real.size() && !detail::stands_at(parts[k], real, at)) ++at;
    if (!detail::stands_at(parts[k], real, at)) return parts[k];
    at += parts[k].size();
  }
  return std::nullopt;
}

inline bool is_excerpt(const Lines& shown, const Lines& real) {
  return !not_printed(shown, real).has_value();
}

// The same excerpt of what is printed now: each part where it is likest, the gaps where they were.
// A part that nothing is like stays.
inline Lines renewed(const Lines& shown, const Lines& real) {
  const auto parts = detail::parts_of(shown);
  if (parts.size() == 1) return real;
  Lines out;
  std::size_t at = 0;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const std::size_t size = parts[k].size(), last = real.size() - std::min(size, real.size());
    std::optional<std::size_t> found = k == 0 ? 0 : last;
    if (k > 0 && k + 1 < parts.size()) found = detail::likest(parts[k], real, at);
    for (std::size_t i = 0; i < size; ++i) {
      const bool known = found.has_value() && *found + i < real.size();
      out.push_back(known ? detail::cut_as(parts[k][i], real[*found + i]) : parts[k][i]);
    }
    at = found.value_or(at) + size;
    if (k + 1 < parts.size()) out.push_back("...");
  }
  return out;
}

}  // namespace documents
