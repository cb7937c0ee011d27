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
  std::vector<std::string> parameters;
  std::vector<std::pair<std::string, std::string>> defaults;  // of those that have a literal
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

// "num_nodes: int = 1, name, x = 2" as names and values, empty where there is none: of parameters,
// and of a call's arguments, whose positional ones are all name.
std::vector<std::pair<std::string, std::string>> items_of(const std::string& list) {
  std::vector<std::pair<std::string, std::string>> all;
  int depth = 0;
  char quote = 0;
  std::string one;
  const auto take = [&] {
    const std::size_t equals = one.find('=');
    const std::string name = trimmed(one.substr(0, std::min(equals, one.find(':'))));
    if (equals != std::string::npos) {
      all.emplace_back(name, trimmed(one.substr(equals + 1)));
    } else if (!name.empty()) {
      all.emplace_back(name, "");
    }
    one.clear();
  };
  for (const char c : list) {
    if (c == '"' || c == '\'') quote = quote == 0 ? c : quote == c ? '\0' : quote;
    if (quote == 0)
      depth += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
    if (c == ',' && depth == 0 && quote == 0) {
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
      if (lines_[i].starts_with("def ") || lines_[i].starts_with("async def ")) add(i);
    for (std::size_t i = 0; i < all.size(); ++i) places_[all[i].name] = i;
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::vector<std::string> names;
      for (std::size_t line = all[i].body; line < all[i].last; ++line)
        add_calls(lines_[line], names);
      for (const std::string& name : names) {
        const auto found = places_.find(name);
        if (found != places_.end() && found->second != i) all[i].calls.insert(found->second);
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
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i].name.starts_with('_') && places_.at(all[i].name) == i && has_settings(i, known))
        found.push_back(all[i].name);
    }
    if (found.size() > most) {
      const std::size_t more = found.size() - most;
      found.resize(most);
      found.push_back(fmt::format("and {} more", more));
    }
    return found;
  }

  // The module's lines in their places, then those of the recipe with what it calls before each
  // call.
  std::string text_of(std::size_t recipe) const {
    std::vector<std::string> out = lines_;
    for (const Function& function : all)
      for (std::size_t i = function.first; i < function.last; ++i) out[i].clear();
    Names module;
    for (const std::string& line : out) add_name(line, module);
    std::vector<std::string> body;
    Names names = module;
    for (const std::string& parameter : all[recipe].parameters) names.erase(parameter);
    for (const auto& [name, value] : all[recipe].defaults) names[name] = value;
    expand(recipe, names, module, body, 0);
    const bool in_place = all[recipe].calls.empty();
    for (std::size_t i = 0; i < body.size(); ++i) {
      if (in_place) {
        out[all[recipe].body + i] = body[i];
      } else {
        out.push_back(body[i]);
      }
    }
    return fmt::format("{}\n", fmt::join(out, "\n"));
  }

  std::vector<Function> all;

 private:
  void add(std::size_t first) {
    Function function;
    function.first = first;
    function.body = lines_.size();  // of brackets that are not closed
    std::size_t line = first, at = lines_[first].find("def ") + 4;
    while (at < lines_[first].size() && is_name(lines_[first][at]))
      function.name += lines_[first][at++];
    int depth = 0;
    char quote = 0;
    std::string parameters;
    for (bool open = true; open && line < lines_.size(); ++line, at = 0) {
      for (; at < lines_[line].size() && open; ++at) {
        const char c = lines_[line][at];
        if (c == '"' || c == '\'') quote = quote == 0 ? c : quote == c ? '\0' : quote;
        if (c == '#' && quote == 0) break;
        if (quote == 0 && c == '(' && depth++ == 0) continue;
        if (quote == 0 && c == ')' && --depth == 0) open = false;
        if (depth > 0) parameters += c;
      }
      if (!open) {  // a body on the line of its head takes the line
        const std::size_t colon = lines_[line].find(':', at);
        const std::string rest =
            colon == std::string::npos ? "" : trimmed(lines_[line].substr(colon + 1));
        function.body = line + 1;
        if (rest.empty() || rest[0] == '#') break;
        lines_[line] = "    " + rest;
        function.body = line;
        break;
      }
    }
    function.last = std::min(std::max(function.body, line + 1), lines_.size());
    while (function.last < lines_.size() && !begins_statement(lines_[function.last]))
      ++function.last;
    for (const auto& [name, value] : items_of(parameters)) {
      function.parameters.push_back(name);
      if (is_literal(value)) function.defaults.emplace_back(name, value);
    }
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

  using Names = std::map<std::string, std::string>;

  // "name = 8", a literal that stands for the name from there on.
  static void add_name(const std::string& line, Names& names) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos || line.compare(equals, 2, "==") == 0) return;
    const std::string name = trimmed(line.substr(0, equals));
    std::string value = trimmed(line.substr(equals + 1));
    value = trimmed(value.substr(0, value.find('#')));
    if (name.empty() || !std::ranges::all_of(name, is_name)) return;
    if (is_literal(value)) {
      names[name] = value;
    } else {
      names.erase(name);
    }
  }

  // The lines of a function; those of a function that a line calls stand before it, with the call's
  // arguments.
  void expand(std::size_t at, Names names, const Names& module, std::vector<std::string>& out,
              int depth) const {
    constexpr std::size_t most_lines = 200'000;
    for (std::size_t i = all[at].body; i < all[at].last && out.size() < most_lines; ++i) {
      std::vector<std::string> called;
      if (!all[at].calls.empty()) add_calls(lines_[i], called);
      for (const std::string& name : called) {
        const auto found = places_.find(name);
        if (found == places_.end() || found->second == at || depth >= deepest_call) continue;
        const std::string arguments = with_names(arguments_of(i, name, all[at].last), names);
        const Names inner = bound(all[found->second], arguments, module);
        expand(found->second, inner, module, out, depth + 1);
      }
      out.push_back(with_names(lines_[i], names));
      add_name(out.back(), names);
    }
  }

  // What stands between the brackets of the call, over several lines.
  std::string arguments_of(std::size_t line, const std::string& name, std::size_t last) const {
    std::string text;
    std::size_t at = lines_[line].find(name + "(") + name.size();
    int depth = 0;
    for (; line < last; ++line, at = 0) {
      for (; at < lines_[line].size(); ++at) {
        const char c = lines_[line][at];
        if (c == '#') break;
        if (c == '(' && depth++ == 0) continue;
        if (c == ')' && --depth == 0) return text;
        text += c;
      }
    }
    return text;
  }

  // A function's parameters at a call: literals of the call, else defaults, else nothing.
  static Names bound(const Function& function, const std::string& arguments, Names names) {
    for (const std::string& parameter : function.parameters) names.erase(parameter);
    for (const auto& [name, value] : function.defaults) names[name] = value;
    std::size_t position = 0;
    for (const auto& [name, value] : items_of(arguments)) {
      const bool positional = value.empty();
      if (positional && position >= function.parameters.size()) break;
      const std::string& parameter = positional ? function.parameters[position++] : name;
      const std::string& given = positional ? name : value;
      if (is_literal(given)) {
        names[parameter] = given;
      } else {
        names.erase(parameter);
      }
    }
    return names;
  }

  // A name stands for its value, but as an attribute, as another call's keyword and where it is
  // set.
  static std::string with_names(const std::string& line, const Names& names) {
    std::string out;
    char quote = 0;
    for (std::size_t i = 0; i < line.size();) {
      const char c = line[i];
      if (c == '"' || c == '\'') quote = quote == 0 ? c : quote == c ? '\0' : quote;
      if (quote != 0 || !is_name(c)) {
        out += line[i++];
        continue;
      }
      std::size_t end = i;
      while (end < line.size() && is_name(line[end])) ++end;
      const std::string name = line.substr(i, end - i);
      const bool attribute = i > 0 && line[i - 1] == '.';
      const std::size_t next = std::min(line.find_first_not_of(' ', end), line.size());
      const bool set = line.compare(next, 1, "=") == 0 && line.compare(next, 2, "==") != 0;
      const bool object = line.compare(end, 1, ".") == 0;
      const auto found = names.find(name);
      out += attribute || set || object || found == names.end() ? name : found->second;
      i = end;
    }
    return out;
  }

  std::vector<std::string> lines_;
  std::map<std::string, std::size_t> places_;  // of a name that is defined twice the last
};

}  // namespace

std::string python_recipe(const std::string& text, const std::string& file,
                          const std::string& recipe, std::string* chosen) {
  const Recipes functions(text);
  const std::vector<std::string> names = functions.names();
  const auto found = functions.recipes();
  if (recipe.empty() && found.size() > 1) {
    throw ConfigError({file, 0, 0}, "has several recipes",
                      fmt::format("name one with --recipe: {}", fmt::join(names, ", ")));
  }
  if (recipe.empty() && found.empty()) return text;
  const std::string& name = recipe.empty() ? functions.all[found.front()].name : recipe;
  const auto named = std::find_if(functions.all.rbegin(), functions.all.rend(),
                                  [&](const Function& f) { return f.name == name; });
  if (named == functions.all.rend()) {
    throw ConfigError({file, 0, 0}, fmt::format("has no recipe {}", quote(name)),
                      names.empty() ? "leave --recipe out"
                                    : fmt::format("its recipes: {}", fmt::join(names, ", ")));
  }
  if (chosen != nullptr) *chosen = name;
  return functions.text_of(static_cast<std::size_t>(functions.all.rend() - named - 1));
}

}  // namespace planner
