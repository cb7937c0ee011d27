// The words that one word of a script stands for once its variables are expanded: none for an empty
// expansion, several for one outside quotes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "planner/exchange/shell_script.hpp"

namespace planner {

// Between these two stands in a word, while it is read, what the script leaves open: "$NODES".
inline constexpr char unknown_begin = '\x01', unknown_end = '\x02';
// The text without such places.
std::string without_unknown(const std::string& text);

// What `read` makes of a line: `most` words between separators, the last with all that follows.
std::vector<std::string> read_words(const std::string& line, const std::string& separators,
                                    std::size_t most);

// Variables may double again and again, so what a script is expanded to is bounded.
struct ShellBudget {
  std::size_t spent = 0;  // characters
  // Throws costmodel::ConfigError beyond 32 MiB.
  void spend(std::size_t characters, const costmodel::Mark& mark);
};

class ShellFields {
 public:
  ShellFields(costmodel::Mark begin, ShellBudget& budget);

  // Throw costmodel::ConfigError for a word beyond 1 MiB, and beyond the budget.
  void add(std::string_view piece);
  void add(char c) { add(std::string_view(&c, 1)); }
  void add_unknown(const std::string& what);
  // Items of a variable; `items`: "${NAME[@]}", which stay words of their own in quotes.
  void add_value(const ShellWords& value, bool quoted, bool items);

  // From here on there is a word, though perhaps an empty one.
  void open() { open_ = true; }
  void close();
  const costmodel::Mark& mark() const { return current_.mark; }
  // The words, the last one closed.
  ShellWords take();

 private:
  ShellWords done_;
  ShellWord current_;
  bool open_ = false;
  ShellBudget& budget_;
};

}  // namespace planner
