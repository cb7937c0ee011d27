// Three kinds of failure. A user's error is a ConfigError: place, fault, remedy. An expected
// failure is a return value with a reason and is never thrown. A bug in Shardplan is an
// InternalError, raised by SHARDPLAN_CHECK.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace costmodel {

// Where a value was written. Lines and columns count from 1; line 0 means the entire file (or the
// command line).
struct Mark {
  std::string file;
  int line = 0;
  int column = 0;
};

// The place of a flag of the command line and its argument: "--set plan.tp=8"; without blanks and
// colons at its end, for a colon follows.
Mark mark_of_argument(const std::string& flag, const std::string& argument);

// "FILE:LINE:COLUMN"; "FILE" when the line is unknown; "" when the file is unknown too.
std::string to_string(const Mark& mark);

// Bad input. what() is "FILE:LINE:COLUMN: what is wrong; what is allowed", a message_text:
// printable whatever the input holds. Pieces of the input in `wrong` and `remedy` are written with
// `quote`.
class ConfigError : public std::runtime_error {
 public:
  ConfigError(const Mark& where, const std::string& wrong, const std::string& remedy);

  // What the message is made of, as it was given.
  struct Parts {
    Mark where;
    std::string wrong, remedy;
  };
  const Parts& parts() const { return *parts_; }

 private:
  std::shared_ptr<const Parts> parts_;  // shared, so that a copy throws nothing
};

// A bug in the program; the message asks the user to report it.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

// The known name nearest to a misspelt one: by edits, up to a third of its length, else one that
// begins with it, else the shortest that holds it; "" when there is none.
std::string nearest_name(const std::string& misspelt, const std::vector<std::string>& known);

// True when `word` is a misspelling of `name`: at most two edits, one for short names. Stricter
// than nearest_name, for places where `word` could also be a valid name.
bool is_misspelling(const std::string& word, const std::string& name);

// "did you mean 'X'? known: a, b, c". The list stops after `most` names.
std::string known_names(const std::string& misspelt, const std::vector<std::string>& known,
                        std::size_t most = 24);

}  // namespace costmodel

#define SHARDPLAN_CHECK(condition) \
  ((condition) ? void(0) : ::costmodel::check_failed(#condition, __FILE__, __LINE__))
