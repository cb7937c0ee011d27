// Which branches of a script's conditions run, as far as its own words decide it: comparisons of
// known words ([ "$SIZE" == 1.7B ], -z, -eq, (( N > 4 )), `if true`), those joined by && and ||, in
// conditions and in front of commands ([ $N = 1 ] && ...), and `case` of a known word. What depends
// on files, on the environment or on the script's arguments is not decided, and every branch
// counts.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "planner/exchange/shell_script.hpp"

namespace planner {

class ShellBranches {
 public:
  // A word at the beginning of a command: if, then, elif, else, fi, case, esac, { and };
  // others do nothing.
  void keyword(std::string_view word);
  // A command, and the character that ends it: perhaps a condition, or a pattern of `case`. True:
  // it is no command that runs. `joint`: '&' of "&&", '|' of "||", '-' of a pipe after it; else 0.
  // `assigns`: variables get a value in front of it.
  bool take(const ShellWords& command, char end, char joint, bool assigns);
  void end_choice();  // ";;"

  // False where the commands that come are known not to run.
  bool run() const;
  // A condition so far was not decided.
  bool undecided() const { return undecided_; }

 private:
  enum class Truth { no, maybe, yes };
  enum class Kind { group, condition, choice };  // `{`, `if`, `case`
  struct Frame {
    Kind kind = Kind::group;
    bool outer = true;               // what is around it runs
    bool doubted = false;            // a list around it may not run
    bool asking = false;             // what is read is the condition, the word or a pattern
    bool taken = false;              // a branch before is known to run
    bool perhaps = false;            // one before may run
    Truth now = Truth::yes;          // whether this branch runs
    Truth listed = Truth::maybe;     // what the commands so far, joined by && and ||, come to
    char joint = '\0';               // what joins the next one to these
    ShellWords subject;              // the word of `case`
    std::vector<ShellWord> pattern;  // so far
  };
  static Truth answer_of(std::span<const ShellWord> words);
  static Truth truth_of(std::span<const ShellWord> words);
  static Truth negated(Truth truth);
  static Truth joint_truth(const Frame& frame);
  static void join(Frame& frame, Truth truth);
  void begin(Kind kind);
  void enter(Frame& frame, Truth truth);
  void take_choice(Frame& frame, const ShellWords& command, char end);
  void take_pattern(Frame& frame, ShellWords words, char end);

  std::vector<Frame> frames_{Frame{}};
  bool undecided_ = false;
};

}  // namespace planner
