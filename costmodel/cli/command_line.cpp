#include "costmodel/cli/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <charconv>
#include <cstdint>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/output_file.hpp"

namespace costmodel {

namespace po = boost::program_options;

namespace {

constexpr const char* operand = "operand";  // no flag has this name

[[noreturn]] void usage(const Program& program, const std::string& wrong,
                        const std::string& remedy) {
  throw ConfigError({}, fmt::format("{}: {}", program.title(), wrong), remedy);
}

std::string see_help(const Program& program) {
  return fmt::format("see {} --help", program.title());
}

const Command* find_command(const Program& program, std::string_view name) {
  const auto at = std::ranges::find(program.commands, name, &Command::name);
  return at == program.commands.end() ? nullptr : &*at;
}

bool is_one_command(const Program& program) { return program.commands.size() == 1; }

po::options_description described(const Program& program) {
  using Words = std::vector<std::string>;
  po::options_description all;
  for (const Flag& flag : program.flags) {
    std::string name(flag.name);
    if (flag.letter != 0) name += fmt::format(",{}", flag.letter);
    if (flag.value.empty()) {
      all.add_options()(name.c_str(), po::bool_switch(), "");
    } else if (flag.several) {
      all.add_options()(name.c_str(), po::value<Words>()->multitoken()->composing(), "");
    } else if (flag.repeatable) {
      all.add_options()(name.c_str(), po::value<Words>()->composing(), "");
    } else {
      all.add_options()(name.c_str(), po::value<std::string>(), "");
    }
  }
  all.add_options()(operand, po::value<Words>(), "");
  return all;
}

// Tells the nearest flag; one of another command with its command.
[[noreturn]] void unknown_flag(const Program& program, const Command* command,
                               const std::string& given) {
  std::vector<std::string> all, own;
  for (const Flag& flag : program.flags) {
    all.push_back(fmt::format("--{}", flag.name));
    if (command == nullptr || is_one_command(program) || admits(flag.only_for, command->name))
      own.push_back(all.back());
  }
  const std::string near = nearest_name(given, all);
  std::string remedy = known_names(given, own, own.size());
  if (!near.empty() && std::ranges::count(own, near) == 0) {
    const auto flag = std::ranges::find(all, near) - all.begin();
    remedy = fmt::format("{} belongs to '{}'; '{}' knows {}", near,
                         fmt::join(split_words(program.flags[std::size_t(flag)].only_for), "', '"),
                         command->name, fmt::join(own, ", "));
  }
  usage(program, "unknown flag " + quote(given), remedy);
}

po::variables_map read(const Program& program, int count, const char* const* arguments) {
  po::variables_map values;
  po::positional_options_description positions;
  positions.add(operand, -1);
  const auto all = described(program);
  try {
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(count, arguments)
                  .options(all)
                  .positional(positions)
                  .style(style)
                  .run(),
              values);
    po::notify(values);
  } catch (const po::unknown_option& fault) {
    const Command* command = is_one_command(program) ? &program.commands.front() : nullptr;
    for (int i = 1; i < count && command == nullptr; ++i)
      command = find_command(program, arguments[i]);
    unknown_flag(program, command, fault.get_option_name());
  } catch (const po::error& fault) {
    usage(program, fault.what(), see_help(program));
  }
  return values;
}

// The flags that were given, with their values.
void take_flags(const Program& program, const po::variables_map& values, CommandLine& line) {
  for (const Flag& flag : program.flags) {
    const std::string name(flag.name);
    const po::variable_value& value = values[name];
    if (value.empty() || value.defaulted()) continue;
    auto& given = line.flags[name];
    if (flag.value.empty()) continue;
    if (flag.repeatable || flag.several) {
      given = value.as<std::vector<std::string>>();
    } else {
      given = {value.as<std::string>()};
    }
  }
}

void check_words(const Program& program, const CommandLine& line) {
  for (const Flag& flag : program.flags) {
    for (const std::string& value : line.words(flag.name)) {
      if (admits(flag.words, value)) continue;
      const auto words = split_words(flag.words);
      usage(program, fmt::format("--{} {} is not known", flag.name, shortened(printable(value))),
            nearest_name(value, words).empty() ? fmt::format("allowed: {}", fmt::join(words, ", "))
                                               : known_names(value, words));
    }
  }
}

void check_format(const Program& program, const CommandLine& line) {
  const Command& command = *line.command;
  if (!line.has("format") || admits(command.formats, line.word("format"))) return;
  usage(program,
        fmt::format("'{}' does not print the format {}", command.name, quote(line.word("format"))),
        fmt::format("allowed: {}", command.formats));
}

void check_operands(const Program& program, const CommandLine& line) {
  const Command& command = *line.command;
  const std::size_t given = line.operands.size();
  if (given >= command.least && given <= command.most) return;
  usage(program,
        fmt::format("'{}' takes {}, {} given", command.name,
                    command.most == 0 ? "flags alone" : command.operands,
                    given == 0   ? "nothing is"
                    : given == 1 ? "one word is"
                                 : fmt::format("{} words are", given)),
        fmt::format("example: {}", command.examples.front()));
}

void check_command(const Program& program, const CommandLine& line) {
  if (line.command == nullptr) {
    std::vector<std::string> names;
    for (const Command& command : program.commands) names.emplace_back(command.name);
    const std::string& given = line.operands.front();
    usage(program, fmt::format("unknown command {}", quote(given)), known_names(given, names));
  }
  if (line.has("help")) return;
  if (!is_one_command(program)) {
    if (const Flag* flag = misplaced(program, line, line.command->name)) {
      usage(program, fmt::format("--{} does not go with '{}'", flag->name, line.command->name),
            fmt::format("it belongs to '{}'", flag->only_for));
    }
  }
  check_operands(program, line);
  check_format(program, line);
  std::vector<std::pair<std::string, std::string>> outputs;
  for (const Flag& flag : program.flags) {
    if (flag.output) outputs.emplace_back(flag.name, line.word(flag.name));
  }
  refuse_same_outputs(program, outputs);
}

}  // namespace

std::string Program::title() const {
  return is_one_command(*this) ? fmt::format("{} {}", name, commands.front().name)
                               : std::string(name);
}

std::string CommandLine::word(std::string_view flag, std::string_view otherwise) const {
  const auto found = flags.find(flag);
  return found == flags.end() || found->second.empty() ? std::string(otherwise)
                                                       : found->second.front();
}

std::vector<std::string> CommandLine::words(std::string_view flag) const {
  const auto found = flags.find(flag);
  return found == flags.end() ? std::vector<std::string>{} : found->second;
}

namespace {

// One flag of each name, the command's own where it has one: `explain --memory`, `batch --memory
// SIZE`.
Program of_command(Program program, int count, const char* const* arguments) {
  const Command* command = nullptr;
  for (int i = 1; i < count && command == nullptr; ++i)
    command = find_command(program, arguments[i]);
  const auto has = [&](const Flag& flag) {
    return command != nullptr && admits(flag.only_for, command->name);
  };
  std::vector<Flag> once;
  for (const Flag& flag : program.flags) {
    const auto same = std::ranges::find(once, flag.name, &Flag::name);
    if (same == once.end()) {
      once.push_back(flag);
    } else if (has(flag)) {
      *same = flag;
    }
  }
  program.flags = std::move(once);
  return program;
}

}  // namespace

CommandLine parse(const Program& all, int count, const char* const* arguments) {
  const Program program = of_command(all, count, arguments);
  const auto values = read(program, count, arguments);
  CommandLine line;
  take_flags(program, values, line);
  if (values.count(operand) != 0) line.operands = values[operand].as<std::vector<std::string>>();
  check_words(program, line);
  if (is_one_command(program)) {
    line.command = &all.commands.front();
  } else if (line.operands.empty()) {
    if (!line.has("help") && !line.has("version"))
      usage(program, "no command is given", see_help(program));
    return line;
  } else if ((line.command = find_command(all, line.operands.front())) != nullptr) {
    line.operands.erase(line.operands.begin());
  }
  check_command(program, line);
  return line;
}

void refuse_same_outputs(const Program& program,
                         const std::vector<std::pair<std::string, std::string>>& files) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      const auto& [one, first] = files[k];
      const auto& [other, second] = files[i];
      if (first.empty() || second.empty() || !is_same_output(first, second)) continue;
      usage(program, fmt::format("{} is named twice, by --{} and --{}", quote(second), one, other),
            "give each a file of its own");
    }
  }
}

const Flag* misplaced(const Program& program, const CommandLine& line, std::string_view word) {
  for (const Flag& flag : program.flags)
    if (line.has(flag.name) && !admits(flag.only_for, word)) return &flag;
  return nullptr;
}

template <class Number>
Number number_of(const Program& program, const CommandLine& line, std::string_view flag,
                 Number otherwise) {
  if (!line.has(flag)) return otherwise;
  const std::string text = line.word(flag);
  Number number{};
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault == std::errc() && end == text.data() + text.size()) return number;
  usage(program, fmt::format("--{} {} is not a number", flag, quote(text)), see_help(program));
}

template int number_of(const Program&, const CommandLine&, std::string_view, int);
template std::uint64_t number_of(const Program&, const CommandLine&, std::string_view,
                                 std::uint64_t);
template double number_of(const Program&, const CommandLine&, std::string_view, double);

std::vector<std::string> split_words(std::string_view words) {
  std::vector<std::string> apart;
  for (std::size_t from = 0; from < words.size();) {
    const std::size_t end = std::min(words.find(' ', from), words.size());
    apart.emplace_back(words.substr(from, end - from));
    from = end + 1;
  }
  return apart;
}

bool admits(std::string_view words, std::string_view word) {
  return words.empty() || std::ranges::count(split_words(words), word) > 0;
}

}  // namespace costmodel
