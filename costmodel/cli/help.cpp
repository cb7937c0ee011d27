#include "costmodel/cli/help.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace costmodel {

namespace {

constexpr std::size_t widest = 100;  // columns of a line
constexpr std::size_t indent = 25;   // where sentences begin

// The sentence after `left`, in lines that begin at the same column.
std::string entry(const std::string& left, const std::string& sentence, std::size_t width) {
  const std::string line = fmt::format("  {:<{}} {}", left, indent - 3, sentence);
  return wrapped(line, std::min(width, widest), indent - 2) + "\n";
}

std::string alternatives(std::string_view words) {
  return fmt::format("{}", fmt::join(split_words(words), ", "));
}

// `command`: null in the help of the whole program.
std::string flag_entry(const Flag& flag, const Command* command, bool told_apart,
                       std::size_t width) {
  std::string left = fmt::format("--{}", flag.name);
  if (flag.letter != 0) left = fmt::format("-{}, {}", flag.letter, left);
  if (!flag.value.empty()) left += fmt::format(" {}", flag.value);
  std::string sentence(flag.help);
  if (flag.name == "format" && command != nullptr)
    sentence = fmt::format("{} (default text)", alternatives(command->formats));
  if (told_apart && !flag.only_for.empty())
    sentence = fmt::format("{}: {}", alternatives(flag.only_for), sentence);
  return entry(left, sentence, width);
}

std::string command_help(const Program& program, const Command& command, std::size_t width) {
  std::string text;
  const auto line = [&](std::string_view usage) {
    text += fmt::format("{} {}\n", text.empty() ? "usage:" : "      ", usage);
  };
  for (const auto usage : command.usages) line(usage);
  if (command.usages.empty())
    line(fmt::format("{} {} {} [flags]", program.name, command.name, command.operands));
  text += fmt::format("\n{}\n\n", command.summary);
  for (const auto example : command.examples) text += fmt::format("example: {}\n", example);
  text += "\nflags:\n";
  const bool one = program.commands.size() == 1;
  for (const Flag& flag : program.flags)
    if (one || admits(flag.only_for, command.name)) text += flag_entry(flag, &command, one, width);
  return one && !program.ending.empty() ? fmt::format("{}\n{}", text, program.ending) : text;
}

}  // namespace

std::string help_of(const Program& program, const Command* command, std::size_t width) {
  if (program.commands.size() == 1) command = &program.commands.front();
  if (command != nullptr) return wrapped(command_help(program, *command, width), width, 7);
  std::string text = fmt::format("usage: {} COMMAND ... [flags]\n\n{}\n\ncommands:\n", program.name,
                                 program.summary);
  for (const Command& each : program.commands) {
    const bool short_enough = each.operands.size() <= 12;
    text += entry(fmt::format("{} {}", each.name, short_enough ? each.operands : "KIND"),
                  std::string(each.summary), width);
  }
  text += fmt::format("\nflags of every command ({} COMMAND --help: all of it):\n", program.name);
  for (const Flag& flag : program.flags)
    if (flag.only_for.empty()) text += flag_entry(flag, nullptr, false, width);
  return wrapped(fmt::format("{}\n{}", text, program.ending), width);
}

}  // namespace costmodel
