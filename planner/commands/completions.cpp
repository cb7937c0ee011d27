#include "planner/commands/completions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"

namespace planner {

using namespace costmodel;

namespace {

// Flags whose values are names that `shardplan list` has.
struct NamedFlag {
  std::string_view flag, list;
};
constexpr std::array named_flags{NamedFlag{"cluster", "clusters"}, NamedFlag{"framework", "stacks"},
                                 NamedFlag{"model", "models"},     NamedFlag{"set", "keys"},
                                 NamedFlag{"over", "keys"},        NamedFlag{"with", "keys"}};
constexpr std::array<std::string_view, 8> listable{"models",  "devices",   "clusters", "stacks",
                                                   "engines", "scenarios", "keys",     "schema"};

std::string_view list_of(const Flag& flag) {
  const auto* const found = std::ranges::find(named_flags, flag.name, &NamedFlag::flag);
  return found == named_flags.end() ? "" : found->list;
}

// The words a flag of a command takes; none: any.
std::string_view words_of(const Flag& flag, const Command& command) {
  return flag.name == "format" ? command.formats : flag.words;
}

template <class Take>
void for_each_flag(const Program& program, const Command& command, Take take) {
  for (const Flag& flag : program.flags)
    if (admits(flag.only_for, command.name)) take(flag);
}

// Within single quotes of a shell.
std::string quoted(std::string_view text) {
  std::string all;
  for (const char c : text) all += c == '\'' ? "'\\''" : std::string(1, c);
  return "'" + all + "'";
}

// What is completed where no flag stands.
std::string operands_of(const Command& command) {
  if (command.name == "list") return fmt::format("{}", fmt::join(listable, " "));
  if (command.name == "completions") return "bash zsh fish";
  return "";
}

bool takes_scenarios(const Command& command) {
  return command.operands.find("SCENARIO") != std::string_view::npos;
}

constexpr std::string_view bash_head =
    R"(# bash completion of shardplan; made by `shardplan completions bash`.
_shardplan_names() {
  shardplan list "$1" --format csv --quiet 2>/dev/null | tail -n +2 | cut -d, -f1
}

_shardplan() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} words=
  COMPREPLY=()
  case "$command $before" in
)";

std::string bash(const Program& program) {
  std::string text(bash_head), names, cases;
  for (const Command& command : program.commands) {
    names += fmt::format("{}{}", names.empty() ? "" : " ", command.name);
    std::string flags;
    for_each_flag(program, command, [&](const Flag& flag) {
      flags += fmt::format(" --{}", flag.name);
      const auto words = words_of(flag, command);
      const std::string place = fmt::format("'{} --{}'", command.name, flag.name);
      if (!words.empty()) {
        text += fmt::format("    {}) words='{}' ;;\n", place, words);
      } else if (!list_of(flag).empty()) {
        text += fmt::format("    {}) words=$(_shardplan_names {}) ;;\n", place, list_of(flag));
      } else if (!flag.value.empty()) {
        text += fmt::format("    {}) compopt -o default; return ;;\n", place);
      }
    });
    cases += fmt::format("      {}) words='{}{}'", command.name, operands_of(command), flags);
    if (takes_scenarios(command)) {
      cases +=
          "; [[ $word == -* ]] || words+=\" $(_shardplan_names scenarios; _shardplan_names "
          "models)\"";
    }
    cases += " ;;\n";
  }
  return text + fmt::format(
                    "  esac\n"
                    "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                    "    words='{} --help --version'\n"
                    "  elif [ -z \"$words\" ]; then\n"
                    "    case \"$command\" in\n{}    esac\n"
                    "    compopt -o default\n"
                    "  fi\n"
                    "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
                    "}}\n"
                    "complete -F _shardplan shardplan\n",
                    names, cases);
}

// A sentence inside [...] of zsh's _arguments.
std::string zsh_sentence(std::string_view text) {
  std::string all;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':') all += '\\';
    all += c;
  }
  return all;
}

std::string zsh(const Program& program) {
  std::string described, cases;
  for (const Command& command : program.commands) {
    described +=
        fmt::format("    {}\n", quoted(fmt::format("{}:{}", command.name, command.summary)));
    cases += fmt::format("    {}) _arguments", command.name);
    for_each_flag(program, command, [&](const Flag& flag) {
      std::string spec = fmt::format("{}--{}[{}]", flag.repeatable || flag.several ? "*" : "",
                                     flag.name, zsh_sentence(flag.help));
      const auto words = words_of(flag, command);
      if (!words.empty()) {
        spec += fmt::format(":{}:({})", flag.name, words);
      } else if (!list_of(flag).empty()) {
        // After a blank zsh adds no words of its own to the call.
        spec += fmt::format(":{}: _shardplan_names {}", flag.name, list_of(flag));
      } else if (!flag.value.empty()) {
        spec += fmt::format(":{}:_files", flag.name);
      }
      cases += " \\\n      " + quoted(spec);
    });
    const std::string operands = operands_of(command);
    cases += " \\\n      " + quoted(!operands.empty() ? fmt::format("*:operand:({})", operands)
                                    : takes_scenarios(command) ? "*:scenario:_shardplan_scenarios"
                                                               : "*:file:_files");
    cases += " ;;\n";
  }
  return fmt::format(
      "#compdef shardplan\n"
      "# zsh completion of shardplan; made by `shardplan completions zsh`.\n"
      "_shardplan_names() {{\n"
      "  local -a names\n"
      "  names=(${{(f)\"$(shardplan list $1 --format csv --quiet 2>/dev/null | tail -n +2 | cut "
      "-d, "
      "-f1)\"}})\n"
      "  compadd -a names\n"
      "}}\n"
      "_shardplan_scenarios() {{\n"
      "  _shardplan_names scenarios\n"
      "  _shardplan_names models\n"
      "  _files\n"
      "}}\n"
      "_shardplan() {{\n"
      "  local -a commands\n"
      "  commands=(\n{}  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  local command=$words[2]\n"
      "  shift words\n"
      "  (( CURRENT-- ))\n"
      "  case $command in\n{}  esac\n"
      "}}\n"
      "_shardplan \"$@\"\n",
      described, cases);
}

std::string fish(const Program& program) {
  std::string text =
      "# fish completion of shardplan; made by `shardplan completions fish`.\n"
      "function __shardplan_names\n"
      "  shardplan list $argv[1] --format csv --quiet 2>/dev/null | tail -n +2 | cut -d, -f1\n"
      "end\n";
  for (const Command& command : program.commands) {
    text += fmt::format("complete -c shardplan -n __fish_use_subcommand -f -a {} -d {}\n",
                        command.name, quoted(command.summary));
    const std::string seen =
        fmt::format("complete -c shardplan -n '__fish_seen_subcommand_from {}'", command.name);
    if (const auto operands = operands_of(command); !operands.empty())
      text += fmt::format("{} -f -a {}\n", seen, quoted(operands));
    if (takes_scenarios(command))
      text += seen + " -a '(__shardplan_names scenarios; __shardplan_names models)'\n";
    for_each_flag(program, command, [&](const Flag& flag) {
      text += fmt::format("{} -l {} -d {}", seen, flag.name, quoted(flag.help));
      if (flag.letter != 0) text += fmt::format(" -s {}", flag.letter);
      const auto words = words_of(flag, command);
      if (!words.empty()) {
        text += fmt::format(" -x -a {}", quoted(words));
      } else if (!list_of(flag).empty()) {
        text += fmt::format(" -x -a '(__shardplan_names {})'", list_of(flag));
      } else if (!flag.value.empty()) {
        text += " -r";
      }
      text += "\n";
    });
  }
  return text;
}

// As roff has it: a line that begins with a dot or an apostrophe is a request.
std::string roff(std::string_view text) {
  std::string all;
  for (const char c : text) {
    const bool begins = all.empty() || all.back() == '\n';
    if (begins && (c == '.' || c == '\'')) all += "\\&";
    if (c == '\\') {
      all += "\\e";
    } else if (c == '-') {
      all += "\\-";
    } else {
      all += c;
    }
  }
  return all;
}

std::string roff_flag(const Flag& flag, std::string_view words) {
  std::string left = fmt::format("\\-\\-{}", roff(flag.name));
  if (flag.letter != 0) left = fmt::format("\\-{}, {}", flag.letter, left);
  std::string text = fmt::format(".TP\n\\fB{}\\fR", left);
  if (!flag.value.empty()) text += fmt::format(" \\fI{}\\fR", roff(flag.value));
  text += "\n" + roff(flag.help) + "\n";
  if (!words.empty()) {
    const auto each = split_words(words);
    text += roff(fmt::format("({})", fmt::join(each, ", "))) + "\n";
  }
  return text;
}

}  // namespace

std::string completions(const Program& program, const std::string& shell) {
  if (shell == "bash") return bash(program);
  if (shell == "zsh") return zsh(program);
  if (shell == "fish") return fish(program);
  throw ConfigError({}, fmt::format("shardplan: no completions for {}", quote(shell)),
                    known_names(shell, {"bash", "zsh", "fish"}));
}

std::string manual_page(const Program& program) {
  std::string text = fmt::format(
      ".TH SHARDPLAN 1 \"\" \"shardplan {}\" \"User Commands\"\n"
      ".SH NAME\nshardplan \\- plans how to train and serve transformers on many accelerators\n"
      ".SH SYNOPSIS\n\\fBshardplan\\fR \\fICOMMAND\\fR ... [\\fIflags\\fR]\n"
      ".SH DESCRIPTION\n{}\n.SH COMMANDS\n",
      SHARDPLAN_VERSION, roff(program.summary));
  for (const Command& command : program.commands) {
    text += fmt::format(".SS {} {}\n{}\n", roff(command.name), roff(command.operands),
                        roff(command.summary));
    for_each_flag(program, command, [&](const Flag& flag) {
      if (!flag.only_for.empty()) text += roff_flag(flag, words_of(flag, command));
    });
    if (!command.formats.empty()) {
      const auto formats = split_words(command.formats);
      text += ".PP\nFormats: " + roff(fmt::format("{}", fmt::join(formats, ", "))) + ".\n";
    }
    for (const auto example : command.examples)
      text += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(example));
  }
  text += ".SH OPTIONS\nOf every command:\n";
  for (const Flag& flag : program.flags)
    if (flag.only_for.empty()) text += roff_flag(flag, flag.words);
  return text + ".SH EXIT STATUS\n" + roff(program.ending) +
         ".SH FILES\nConfigurations are read from the folders of \\-\\-config\\-path, "
         "$SHARDPLAN_CONFIG_PATH and share/shardplan/configs of the installation.\n";
}

}  // namespace planner
