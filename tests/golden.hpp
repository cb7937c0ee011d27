// Golden files: compares text with a file of tests/golden, byte by byte. SHARDPLAN_UPDATE_GOLDEN=1
// rewrites the files; read the diff before committing it.
#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace golden {

inline std::string path_of(const std::string& name) {
  return std::string(SHARDPLAN_SOURCE_DIR) + "/tests/golden/" + name;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The first place where two texts differ, as a unified hunk of at most `context` lines on either
// side; "" when they are equal.
inline std::string first_difference(const std::string& expected, const std::string& actual,
                                    std::size_t context = 3) {
  if (expected == actual) return "";
  const auto want = lines_of(expected), have = lines_of(actual);
  std::size_t at = 0;
  while (at < want.size() && at < have.size() && want[at] == have[at]) ++at;
  if (at == want.size() && at == have.size()) return "the last line's end differs\n";
  std::string text = "@@ line " + std::to_string(at + 1) + " @@\n";
  for (std::size_t i = at - (at < context ? at : context); i < at; ++i)
    text += " " + want[i] + "\n";
  for (std::size_t i = at; i < want.size() && i < at + context; ++i) text += "-" + want[i] + "\n";
  for (std::size_t i = at; i < have.size() && i < at + context; ++i) text += "+" + have[i] + "\n";
  return text;
}

// "" when `text` equals tests/golden/NAME, else what differs and how to accept it.
inline std::string compare(const std::string& name, const std::string& text) {
  const char* update = std::getenv("SHARDPLAN_UPDATE_GOLDEN");
  if (update != nullptr && std::string(update) == "1") {
    std::ofstream(path_of(name), std::ios::binary) << text;
    return "";
  }
  std::ifstream in(path_of(name), std::ios::binary);
  if (!in) return path_of(name) + " cannot be read; SHARDPLAN_UPDATE_GOLDEN=1 writes it";
  const std::string expected((std::istreambuf_iterator<char>(in)),
                             std::istreambuf_iterator<char>());
  const std::string difference = first_difference(expected, text);
  return difference.empty() ? "" : name + " differs:\n" + difference;
}

}  // namespace golden
