#include "planner/frameworks/megatron_log.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string_view>

#include "planner/frameworks/framework_words.hpp"

namespace planner {

namespace {

constexpr std::string_view table_begin = " arguments ---", table_end = "end of arguments";

// A value as flags have it: lists without brackets and quotes, types without their module.
std::vector<std::string> values_of(std::string value) {
  if (value.starts_with("torch.")) value.erase(0, 6);
  if (!value.starts_with('[')) return {value};
  std::ranges::replace_if(
      value, [](char c) { return std::string_view("[]'\",").find(c) != std::string_view::npos; },
      ' ');
  std::vector<std::string> items;
  std::istringstream words(value);
  for (std::string word; words >> word;) items.push_back(word);
  return items;
}

void add(const std::string& name, const std::string& value, const costmodel::Mark& mark,
         MegatronArguments& out) {
  constexpr std::string_view off = "not ";
  std::string_view other = framework_words("logged-arguments").read_as(name);
  const bool inverse = other.starts_with(off);
  if (inverse) other.remove_prefix(off.size());
  std::string flag = "--" + std::string(other);
  std::ranges::replace(flag, '_', '-');
  if (value == "None" || value == "[]" || value.empty()) return;
  if (value == "True" || value == "False") {
    if ((value == "True") != inverse) out.list.push_back({flag, {}, mark, ""});
    return;
  }
  out.list.push_back({flag, values_of(value), mark, ""});
}

// "  name ....... value": launchers write a rank or a time before it, names of 48 letters and more
// have no dots.
void read_line(std::string line, const costmodel::Mark& mark, MegatronArguments& out) {
  if (!line.empty() && line.back() == '\r') line.pop_back();
  const std::size_t dots = line.find(" ..");
  std::string name, value;
  if (dots != std::string::npos) {
    const std::size_t begin = line.find_last_of(" :]", dots - (dots > 0 ? 1 : 0));
    name = line.substr(begin == std::string::npos ? 0 : begin + 1, dots - begin - 1);
    const std::size_t after = line.find_first_not_of('.', dots + 1);
    if (after != std::string::npos && line[after] == ' ') value = line.substr(after + 1);
  } else {
    std::istringstream words(line);
    words >> name >> value;
  }
  const bool plain =
      !name.empty() &&
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
  if (plain) add(name, value, mark, out);
}

}  // namespace

bool holds_megatron_log(const std::string& text) {
  return text.find(table_begin) != std::string::npos && text.find(table_end) != std::string::npos;
}

MegatronArguments read_megatron_log(const std::string& text, const std::string& file) {
  MegatronArguments out;
  out.from_log = true;
  std::istringstream lines(text);
  int number = 0;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find(table_end) != std::string::npos) break;
    if (inside) read_line(line, {file, number, 1}, out);
    inside = inside || line.find(table_begin) != std::string::npos;
  }
  if (const auto* world = out.find("--world-size"); world != nullptr && !world->values.empty()) {
    const std::string& value = world->values.front();
    std::from_chars(value.data(), value.data() + value.size(), out.world_size);
  }
  return out;
}

}  // namespace planner
