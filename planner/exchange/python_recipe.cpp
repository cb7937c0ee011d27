#include "planner/exchange/python_recipe.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"

namespace planner {

using namespace costmodel;

namespace {

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

struct Function {
  std::string name;
  std::size_t first = 0, body = 0, last = 0;  // lines: of `def`, of its body, the one after it
  std::vector<std::pair<std::string, std::string>> defaults;  // of its parameters
  std::vector<std::size_t> calls;                             // functions of the file
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

// Whether `name(` stands in the line, not as a part of a longer name or an attribute.
bool calls(const std::string& line, const std::string& name) {
  for (std::size_t at = line.find(name); at != std::string::npos; at = line.find(name, at + 1)) {
    const bool begins = at == 0 || (!is_name(line[at - 1]) && line[at - 1] != '.');
    const std::size_t end = at + name.size();
    if (begins && end < line.size() && line[end] == '(') return true;
  }
  return false;
}

class Recipes {
 public:
  explicit Recipes(const std::string& text) : lines_(lines_of(text)) {
    for (std::size_t i = 0; i < lines_.size(); ++i)
      if (lines_[i].starts_with("def ")) add(i);
    for (Function& function : all) {
      for (std::size_t other = 0; other < all.size(); ++other)
        if (&all[other] != &function && mentions(function, all[other].name))
          function.calls.push_back(other);
    }
  }

  // Functions with settings that no other one calls.
  std::vector<std::size_t> recipes() const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool called = std::ranges::any_of(all, [&](const Function& function) {
        return std::ranges::find(function.calls, i) != function.calls.end();
      });
      if (!called && has_settings(i)) found.push_back(i);
    }
    return found;
  }

  // Of those that may be asked for.
  std::vector<std::string> names() const {
    constexpr std::size_t most = 60;
    std::vector<std::string> found;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (!all[i].name.starts_with('_') && has_settings(i)) found.push_back(all[i].name);
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

  bool mentions(const Function& function, const std::string& name) const {
    for (std::size_t i = function.body; i < function.last; ++i)
      if (calls(lines_[i], name)) return true;
    return false;
  }

  // Of the function itself or of those that it calls.
  bool has_settings(std::size_t at) const {
    static constexpr std::array<std::string_view, 8> words{
        "parallel_size", "parallel_degree", "batch_size", "seq_len",
        "num_layers",    "model_registry",  "recompute",  "build_model_config"};
    std::vector<std::size_t> order;
    visit(at, order);
    for (const std::size_t one : order) {
      for (std::size_t i = all[one].body; i < all[one].last; ++i) {
        const bool set = std::ranges::any_of(words, [&](std::string_view word) {
          return lines_[i].find(word) != std::string::npos;
        });
        if (set) return true;
      }
    }
    return false;
  }

  // What is called first stands first.
  void visit(std::size_t at, std::vector<std::size_t>& order) const {
    std::vector<std::size_t> path;
    visit(at, order, path);
  }
  void visit(std::size_t at, std::vector<std::size_t>& order,
             std::vector<std::size_t>& path) const {
    constexpr std::size_t deepest = 32;
    if (path.size() > deepest || std::ranges::find(path, at) != path.end() ||
        std::ranges::find(order, at) != order.end())
      return;
    path.push_back(at);
    for (const std::size_t other : all[at].calls) visit(other, order, path);
    path.pop_back();
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
