// The command line of a program from records: parsing, help and error messages all come from the
// same rows. The conventions are GNU's: "--flag VALUE", "--flag=VALUE", "--" ends the flags, no
// abbreviations.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace costmodel {

struct Flag {
  std::string_view name = {};   // long form, without its "--"
  char letter = 0;              // short form: 'h' is "-h"; 0: none
  std::string_view value = {};  // what help calls its value; empty: a switch
  std::string_view help = {};
  // The commands that take it, apart by blanks; empty: all. In a program of one command these are
  // the values of its --backend, and the program calls `misplaced` when it knows which.
  std::string_view only_for = {};
  std::string_view words = {};  // the values there are, apart by blanks; empty: any
  bool repeatable = false;
  bool several = false;  // takes all words that follow: "--from A B"
  bool output = false;   // its value is a file that is written
};

struct Command {
  std::string_view name = {};
  std::string_view operands = {};  // as help names them
  std::size_t least = 0, most = 0;
  std::string_view formats = {};  // the values of --format, apart by blanks
  std::string_view summary = {};
  std::vector<std::string_view> examples = {};
  std::vector<std::string_view> usages = {};  // empty: made from name and operands
};

struct Program {
  std::string_view name = {};  // "shardplan"
  std::string_view summary = {};
  std::vector<Command> commands = {};  // a program of one command is told without its name
  std::vector<Flag> flags = {};
  std::string_view ending = {};  // paragraphs at the end of help

  // How its messages begin: "shardplan", of one command "shardplan run".
  std::string title() const;
};

// What was given.
struct CommandLine {
  const Command* command =
      nullptr;  // null: no word is given, or (then in `operands`) an unknown one
  std::vector<std::string> operands = {};
  // By the name of the flag, in the order given. A switch has no values.
  std::map<std::string, std::vector<std::string>, std::less<>> flags = {};

  bool has(std::string_view flag) const { return flags.contains(flag); }
  std::string word(std::string_view flag, std::string_view otherwise = "") const;
  std::vector<std::string> words(std::string_view flag) const;
};

// Throws ConfigError for an unknown or misplaced flag, a flag without its value, a value that is
// none of the flag's words, an unknown command, too few or too many operands, and two outputs of
// one file. With --help or --version the last four are not checked. The result points into
// `program`.
CommandLine parse(const Program& program, int count, const char* const* arguments);

// Throws ConfigError where two of the files are one, under whatever names: each is written by the
// flag next to it. Empty files count for nothing.
void refuse_same_outputs(const Program& program,
                         const std::vector<std::pair<std::string, std::string>>& files);

// The first flag given that does not go with `word`; null: none.
const Flag* misplaced(const Program& program, const CommandLine& line, std::string_view word);

// The value of a flag as a number (int, std::uint64_t or double), or `otherwise`. Throws
// ConfigError.
template <class Number>
Number number_of(const Program& program, const CommandLine& line, std::string_view flag,
                 Number otherwise);

// "a b" as {"a", "b"}.
std::vector<std::string> split_words(std::string_view words);

// Whether `words` is empty or holds `word`.
bool admits(std::string_view words, std::string_view word);

// The flags that several programs take, each with one sentence.
inline constexpr Flag out_flag{
    .name = "out",
    .letter = 'o',
    .value = "FILE",
    .help = "write there instead of standard output, whole or not at all",
    .output = true};
inline constexpr Flag allow_path_flag{
    .name = "allow-path",
    .value = "DIR",
    .help = "files may name files of DIR too, not only of the scenario's folder (repeatable)",
    .repeatable = true};
inline constexpr Flag config_path_flag{
    .name = "config-path",
    .value = "DIR",
    .help = "search DIR before the installed configs (repeatable)",
    .repeatable = true};
inline constexpr Flag set_flag{.name = "set",
                               .value = "KEY.PATH=VALUE",
                               .help = "override one value of the scenario (repeatable)",
                               .repeatable = true};
inline constexpr Flag color_flag{.name = "color",
                                 .value = "WHEN",
                                 .help = "auto, always or never",
                                 .words = "auto always never"};
inline constexpr Flag help_flag{.name = "help", .letter = 'h', .help = "this text"};

}  // namespace costmodel
