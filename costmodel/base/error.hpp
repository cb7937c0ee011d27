// The three failures of Shardplan, told three ways: the user's (ConfigError: place, fault, remedy),
// expected ones (values with a reason, never thrown), and ours (InternalError, from CHECK).
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace costmodel {

// Where a value was written. Lines and columns count from 1; line 0 means the whole file (or the
// command line).
struct Mark {
  std::string file;
  int line = 0;
  int column = 0;
};

// "FILE:LINE:COLUMN", "FILE" when the line is not known, "" when nothing is.
std::string to_string(const Mark& mark);

// Bad input. what() is "FILE:LINE:COLUMN: what is wrong; what is allowed".
class ConfigError : public std::runtime_error {
 public:
  ConfigError(const Mark& where, const std::string& wrong, const std::string& remedy);
};

// A fault of the program itself; its message asks for a report.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

// The known name nearest to a misspelt one, or "" when none is near (edit distance above a third of
// its length).
std::string nearest_name(const std::string& misspelt, const std::vector<std::string>& known);

// Whether a word is `name` with at most two slips of the pen, one in a short name. Stricter than
// nearest_name: for when the word may be a name of its own.
bool is_misspelling(const std::string& word, const std::string& name);

// "did you mean 'X'? known: a, b, c" (the list is cut after `most` names).
std::string known_names(const std::string& misspelt, const std::vector<std::string>& known,
                        std::size_t most = 24);

}  // namespace costmodel

#define SHARDPLAN_CHECK(condition) \
  ((condition) ? void(0) : ::costmodel::check_failed(#condition, __FILE__, __LINE__))
