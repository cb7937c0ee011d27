// Which branches of a script's conditions run, as far as its own words decide it: comparisons of
// known words ([ "$SIZE" == 1.7B ], -z, -eq, `if true`) and `case` of a known word. What depends on
// files, on the environment or on the script's arguments is not decided, and every branch counts.
#pragma once

#include <string_view>
#include <vector>

#include "planner/exchange/shell_script.hpp"

namespace planner {

class ShellBranches {
 public:
  // A word at the beginning of a command: if, then, elif, else, fi, case, esac; others do nothing.
  void keyword(std::string_view word);
  // A command, and the character that ends it: perhaps a condition, or a pattern of `case`. True:
  // it is no command that runs.
  bool take(const ShellWords& command, char end);
  void end_choice();  // ";;"

  // False where the commands that come are known not to run.
  bool run() const;
  // A condition so far was not decided.
  bool undecided() const { return undecided_; }

 private:
  enum class Truth { no, maybe, yes };
  struct Frame {
    bool choice = false;             // `case`, else `if`
    bool outer = true;               // what is around it runs
    bool asking = true;              // what is read is the condition, the word or a pattern
    bool taken = false;              // a branch before is known to run
    bool perhaps = false;            // one before may run
    Truth now = Truth::maybe;        // whether this branch runs
    std::vector<ShellWords> tests;   // the commands of the condition
    ShellWords subject;              // the word of `case`
    std::vector<ShellWord> pattern;  // so far
  };
  static Truth truth_of(const ShellWords& words);
  void enter(Frame& frame, Truth truth);
  void take_pattern(Frame& frame, ShellWords words, char end);

  std::vector<Frame> frames_;
  bool undecided_ = false;
};

}  // namespace planner
