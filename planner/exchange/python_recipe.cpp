#include "planner/exchange/python_recipe.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"

namespace planner {

using namespace costmodel;

namespace {

constexpr int deepest_call = 32;

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

struct Function {
  std::string name;
  std::size_t first = 0, body = 0, last = 0;  // lines: of `def`, of its body, the one after it
  std::vector<std::pair<std::string, std::string>> defaults;  // of its parameters
  std::set<std::size_t> calls;                                // functions of the file
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string trimmed(std::string text) {
  text.erase(0, text.find_first_not_of(" \t\r\n"));
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  return text;
}

// A number, a string, True, False or None: what may stand for a parameter.
bool is_literal(const std::string& text) {
  if (text == "True" || text == "False" || text == "None") return true;
  if (text.size() > 1 && (text.front() == '"' || text.front() == '\'') &&
      text.find(text.front(), 1) == text.size() - 1)
    return true;
  return !text.empty() && text.find_first_not_of("0123456789_.e+-") == std::string::npos;
}

// "num_nodes: int = 1, name: str = "default"" as names and defaults.
std::vector<std::pair<std::string, std::string>> defaults_of(const std::string& parameters) {
  std::vector<std::pair<std::string, std::string>> all;
  int depth = 0;
  std::string one;
  const auto take = [&] {
    const std::size_t equals = one.find('=');
    if (equals != std::string::npos) {
      const std::string name = trimmed(one.substr(0, std::min(equals, one.find(':'))));
      const std::string value = trimmed(one.substr(equals + 1));
      if (is_literal(value)) all.emplace_back(name, value);
    }
    one.clear();
  };
  for (const char c : parameters) {
    depth += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
    if (c == ',' && depth == 0) {
      take();
    } else {
      one += c;
    }
  }
  take();
  return all;
}

// Names before a bracket, not as attributes.
void add_calls(const std::string& line, std::vector<std::string>& names) {
  for (std::size_t i = 0; i < line.size();) {
    if (!is_name(line[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < line.size() && is_name(line[end])) ++end;
    const bool attribute = i > 0 && line[i - 1] == '.';
    if (!attribute && end < line.size() && line[end] == '(')
      names.push_back(line.substr(i, end - i));
    i = end;
  }
}

class Recipes {
 public:
  explicit Recipes(const std::string& text) : lines_(lines_of(text)) {
    for (std::size_t i = 0; i < lines_.size(); ++i)
      if (lines_[i].starts_with("def ")) add(i);
    std::map<std::string, std::size_t> places;
    for (std::size_t i = 0; i < all.size(); ++i) places.emplace(all[i].name, i);
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::vector<std::string> names;
      for (std::size_t line = all[i].body; line < all[i].last; ++line)
        add_calls(lines_[line], names);
      for (const std::string& name : names) {
        const auto found = places.find(name);
        if (found != places.end() && found->second != i) all[i].calls.insert(found->second);
      }
    }
  }

  // Functions with settings that no other one calls.
  std::vector<std::size_t> recipes() const {
    std::vector<bool> called(all.size());
    for (const Function& function : all)
      for (const std::size_t other : function.calls) called[other] = true;
    std::vector<signed char> known(all.size(), -1);
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (!called[i] && has_settings(i, known)) found.push_back(i);
    return found;
  }

  // Of those that may be asked for.
  std::vector<std::string> names() const {
    constexpr std::size_t most = 60;
    std::vector<signed char> known(all.size(), -1);
    std::vector<std::string> found;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (!all[i].name.starts_with('_') && has_settings(i, known)) found.push_back(all[i].name);
    if (found.size() > most) {
      const std::size_t more = found.size() - most;
      found.resize(most);
      found.push_back(fmt::format("and {} more", more));
    }
    return found;
  }

  std::string text_of(std::size_t recipe) const {
    std::vector<std::size_t> order;
    visit(recipe, order);
    const bool in_place = std::ranges::is_sorted(order);
    std::vector<std::string> out = lines_;
    for (const Function& function : all)
      for (std::size_t i = function.first; i < function.last; ++i) out[i].clear();
    for (const std::size_t one : order) {
      for (std::size_t i = all[one].body; i < all[one].last; ++i) {
        std::string line = with_defaults(lines_[i], all[one]);
        if (in_place) {
          out[i] = std::move(line);
        } else {
          out.push_back(std::move(line));
        }
      }
    }
    return fmt::format("{}\n", fmt::join(out, "\n"));
  }

  std::vector<Function> all;

 private:
  void add(std::size_t first) {
    Function function;
    function.first = first;
    const std::string& head = lines_[first];
    std::size_t at = 4;
    while (at < head.size() && is_name(head[at])) function.name += head[at++];
    int depth = 0;
    std::string parameters;
    std::size_t line = first;
    for (bool open = true; open && line < lines_.size(); at = 0, open = open && ++line > 0) {
      for (; at < lines_[line].size() && open; ++at) {
        const char c = lines_[line][at];
        if (c == '(' && depth++ == 0) continue;
        if (c == ')' && --depth == 0) open = false;
        if (depth > 0) parameters += c;
      }
      if (!open) break;
    }
    function.body = std::min(line + 1, lines_.size());
    function.last = function.body;
    while (function.last < lines_.size() && !begins_statement(lines_[function.last]))
      ++function.last;
    function.defaults = defaults_of(parameters);
    all.push_back(std::move(function));
  }

  static bool begins_statement(const std::string& line) {
    return !line.empty() && line[0] != ' ' && line[0] != '\t' && line[0] != '#' && line[0] != ')' &&
           line[0] != '\r';
  }

  bool sets(const Function& function) const {
    static constexpr std::array<std::string_view, 8> words{
        "parallel_size", "parallel_degree", "batch_size", "seq_len",
        "num_layers",    "model_registry",  "recompute",  "build_model_config"};
    for (std::size_t i = function.body; i < function.last; ++i) {
      for (const std::string_view word : words)
        if (lines_[i].find(word) != std::string::npos) return true;
    }
    return false;
  }

  // Whether each function, or one that it calls, has settings; each is asked once.
  bool has_settings(std::size_t at, std::vector<signed char>& known, int depth = 0) const {
    if (known[at] >= 0) return known[at] > 0;
    known[at] = 0;
    bool found = sets(all[at]);
    for (const std::size_t other : all[at].calls) {
      if (found || depth > deepest_call) break;
      found = has_settings(other, known, depth + 1);
    }
    known[at] = found ? 1 : 0;
    return found;
  }

  // What is called first stands first.
  void visit(std::size_t at, std::vector<std::size_t>& order) const {
    std::set<std::size_t> seen;
    visit(at, order, seen, 0);
  }
  void visit(std::size_t at, std::vector<std::size_t>& order, std::set<std::size_t>& seen,
             int depth) const {
    if (depth > deepest_call || !seen.insert(at).second) return;
    for (const std::size_t other : all[at].calls) visit(other, order, seen, depth + 1);
    order.push_back(at);
  }

  // A parameter's name stands for its default, but as an attribute or as another call's keyword.
  static std::string with_defaults(const std::string& line, const Function& function) {
    std::string out;
    for (std::size_t i = 0; i < line.size();) {
      if (!is_name(line[i])) {
        out += line[i++];
        continue;
      }
      std::size_t end = i;
      while (end < line.size() && is_name(line[end])) ++end;
      const std::string name = line.substr(i, end - i);
      const bool attribute = i > 0 && line[i - 1] == '.';
      const std::size_t next = std::min(line.find_first_not_of(' ', end), line.size());
      const bool keyword = line.compare(next, 1, "=") == 0 && line.compare(next, 2, "==") != 0;
      const auto found = std::ranges::find_if(
          function.defaults, [&](const auto& parameter) { return parameter.first == name; });
      out += attribute || keyword || found == function.defaults.end() ? name : found->second;
      i = end;
    }
    return out;
  }

  std::vector<std::string> lines_;
};

}  // namespace

std::string python_recipe(const std::string& text, const std::string& file,
                          const std::string& recipe) {
  const Recipes functions(text);
  const std::vector<std::string> names = functions.names();
  const auto found = functions.recipes();
  if (!recipe.empty()) {
    const auto named =
        std::ranges::find_if(functions.all, [&](const Function& f) { return f.name == recipe; });
    if (named != functions.all.end())
      return functions.text_of(static_cast<std::size_t>(named - functions.all.begin()));
    throw ConfigError({file, 0, 0}, fmt::format("has no recipe {}", quote(recipe)),
                      names.empty() ? "leave --recipe out"
                                    : fmt::format("its recipes: {}", fmt::join(names, ", ")));
  }
  if (found.size() > 1) {
    throw ConfigError({file, 0, 0}, "has several recipes",
                      fmt::format("name one with --recipe: {}", fmt::join(names, ", ")));
  }
  return found.empty() ? text : functions.text_of(found.front());
}

}  // namespace planner
