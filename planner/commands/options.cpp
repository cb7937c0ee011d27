#include "planner/commands/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/program_options.hpp>
#include <string_view>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "planner/commands/export_targets.hpp"

namespace planner {

namespace po = boost::program_options;
using costmodel::ConfigError;

namespace {

struct CommandRecord {
  std::string_view name;
  std::string_view operands;
  std::size_t least, most;
  std::string_view formats;  // as in --format
  std::string_view help;
  std::string_view example;
};

constexpr std::array commands{
    CommandRecord{"plan", "SCENARIO", 1, 1, "text json yaml csv md",
                  "search for the best plans; the reason for each, and what one step away costs",
                  "shardplan plan configs/scenarios/gpt3-175b-selene.yaml"},
    CommandRecord{"evaluate", "SCENARIO", 1, 1, "text json yaml md",
                  "predict time, memory and communication of the scenario's own plan",
                  "shardplan evaluate my.yaml --set plan.tp=8 --set plan.pp=16"},
    CommandRecord{"explain", "SCENARIO", 1, 1, "text json md",
                  "the same prediction as worked formulas: symbol, value, where it comes from",
                  "shardplan explain my.yaml"},
    CommandRecord{
        "sweep", "SCENARIO", 1, 1, "text json csv md",
        "evaluate every combination of --over values, one row a point",
        "shardplan sweep my.yaml --over tp=1,2,4,8 --over micro_batch=1,2,4 --format csv"},
    CommandRecord{"simulate", "SCENARIO", 1, 1, "text json",
                  "event by event: a chart, and with --trace a Chrome or Perfetto trace",
                  "shardplan simulate my.yaml --trace trace.json"},
    CommandRecord{"validate", "EVIDENCE ...", 1, 10'000, "text json csv md html svg",
                  "predict measured runs; the error of each source, device, framework, and of all",
                  "shardplan validate configs/evidence --fail-above 12"},
    CommandRecord{"calibrate", "--from FILE", 0, 0, "text",
                  "measure this machine, or fit constants to measurements (a program of its own)",
                  "shardplan calibrate --from log.yaml --base dgx-h100 --out mine.yaml"},
    CommandRecord{"run", "SCENARIO", 0, 1, "text json",
                  "execute the scenario's plan and hold it against the prediction (a program of "
                  "its own)",
                  "shardplan run configs/scenarios/tiny-gpt-cpu.yaml --backend threads"},
    CommandRecord{"import", "hf|nccl-tests FILE", 2, 2, "text json yaml",
                  "a foreign description in, YAML of ours out (hf: a Hugging Face config.json; "
                  "nccl-tests: a log)",
                  "shardplan import hf config.json --out configs/models/mine.yaml"},
    CommandRecord{"export", "SCENARIO", 1, 1, "text json",
                  "the plan as a framework's own configuration and launch",
                  "shardplan export my.yaml --to megatron --out launch.sh"},
    CommandRecord{"list", "models|devices|clusters|stacks|scenarios", 1, 1, "text json csv md",
                  "what the configurations offer", "shardplan list clusters"},
};

struct FlagRecord {
  std::string_view name;
  std::string_view argument;  // empty: a switch
  std::string_view only_for;  // commands, empty: all
  std::string_view help;
};

constexpr std::array flags{
    FlagRecord{"format", "FORMAT", "",
               "text, json, and where it makes sense yaml, csv, md, html, svg"},
    FlagRecord{"out", "FILE", "", "write there instead of standard output, whole or not at all"},
    FlagRecord{"config-path", "DIR", "", "search DIR before the installed configs (repeatable)"},
    FlagRecord{"set", "KEY.PATH=VALUE", "", "override one value of the scenario (repeatable)"},
    FlagRecord{"top", "N", "plan", "how many plans to report"},
    FlagRecord{
        "strategy", "NAME", "plan validate",
        "grid: even stages (default); alpa: any layout, and sharding in a stage; both: side "
        "by side; meshes: each stage its own devices and sizes (alone where devices differ)"},
    FlagRecord{"time-limit", "SECONDS", "plan",
               "alpa, both, meshes: stop then with the best so far and the proved gap"},
    FlagRecord{
        "threads", "N", "plan validate",
        "alpa, both, --against-planner, --fit, --leave-one-source-out: threads (default: one a "
        "core)"},
    FlagRecord{"over", "KEY=A,B,...", "sweep",
               "values to try for a key of the plan, or a dotted path (repeatable)"},
    FlagRecord{"placement", "FILE", "plan evaluate",
               "write the group, node and device of every rank, as YAML or (.json) JSON"},
    FlagRecord{"trace", "FILE.json", "simulate", "write the timeline as a Chrome trace"},
    FlagRecord{"write-schedule", "FILE", "simulate",
               "write the schedule, which plan.schedule: {file: FILE} reads: as PyTorch's pipeline "
               "runtime reads it (.csv), or as text"},
    FlagRecord{"to", "FRAMEWORK", "export", export_target_names},
    FlagRecord{"fail-above", "PCT", "validate",
               "exit status 4 when the mean over sources (--against-planner: the largest loss) is "
               "above"},
    FlagRecord{"write-residuals", "FILE", "validate",
               "write the table that prediction intervals rest on (configs/residuals.yaml)"},
    FlagRecord{"against-planner", "", "validate",
               "hold each run's plan against the planner's best for it (--strategy grid or alpa)"},
    FlagRecord{"rows", "", "validate", "every run, not only the summary (text, md, html)"},
    FlagRecord{"notes", "FILE", "validate", "end the report with this file (md, html)"},
    FlagRecord{"fit", "FILE", "validate",
               "refit the constants that FILE names on the runs, and show them"},
    FlagRecord{"leave-one-source-out", "", "validate",
               "each source, model family and device by constants fitted on all others (--fit: "
               "which constants; default: fit.yaml of the configs)"},
    FlagRecord{"quiet", "", "", "no progress and no warnings"},
    FlagRecord{"color", "WHEN", "", "auto, always or never"},
    FlagRecord{"help", "", "", "this text; shardplan COMMAND --help for one command"},
    FlagRecord{"version", "", "", "the version"},
};

constexpr std::array<std::string_view, 7> format_names{"text", "json", "yaml", "csv",
                                                       "md",   "html", "svg"};

bool contains_word(std::string_view words, std::string_view word) {
  for (std::size_t from = 0; from < words.size();) {
    const std::size_t end = std::min(words.find(' ', from), words.size());
    if (words.substr(from, end - from) == word) return true;
    from = end + 1;
  }
  return false;
}

const CommandRecord* find_command(std::string_view name) {
  const auto at =
      std::find_if(commands.begin(), commands.end(), [&](const auto& c) { return c.name == name; });
  return at == commands.end() ? nullptr : &*at;
}

[[noreturn]] void usage(const std::string& wrong, const std::string& remedy) {
  throw ConfigError({}, "shardplan: " + wrong, remedy);
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const auto& c : commands) names.emplace_back(c.name);
  return names;
}

po::options_description description() {
  po::options_description all;
  for (const FlagRecord& flag : flags) {
    const std::string name = flag.name == "help" ? "help,h" : std::string(flag.name);
    if (flag.argument.empty()) {
      all.add_options()(name.c_str(), po::bool_switch(), "");
    } else if (flag.help.find("repeatable") != std::string_view::npos) {
      all.add_options()(name.c_str(), po::value<std::vector<std::string>>()->composing(), "");
    } else {
      all.add_options()(name.c_str(), po::value<std::string>(), "");
    }
  }
  all.add_options()("operand", po::value<std::vector<std::string>>(), "");
  return all;
}

std::string flag_line(const FlagRecord& flag) {
  const std::string left = flag.argument.empty() ? fmt::format("--{}", flag.name)
                                                 : fmt::format("--{} {}", flag.name, flag.argument);
  return fmt::format("  {:<22} {}\n", left, flag.help);
}

std::vector<std::string> flag_names() {
  std::vector<std::string> names;
  for (const auto& f : flags) names.push_back("--" + std::string(f.name));
  return names;
}

po::variables_map parsed(int count, const char* const* arguments) {
  po::variables_map values;
  po::positional_options_description positions;
  positions.add("operand", -1);
  const auto all = description();
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
    usage("unknown flag " + costmodel::quote(fault.get_option_name()),
          costmodel::known_names(fault.get_option_name(), flag_names()));
  } catch (const po::error& fault) {
    usage(fault.what(), "see shardplan --help");
  }
  return values;
}

void check_flags(const po::variables_map& values, const CommandRecord& command) {
  for (const FlagRecord& flag : flags) {
    const auto& value = values[std::string(flag.name)];
    if (flag.only_for.empty() || value.empty() || value.defaulted()) continue;
    if (!contains_word(flag.only_for, command.name)) {
      usage(fmt::format("--{} does not go with '{}'", flag.name, command.name),
            fmt::format("it belongs to '{}'", flag.only_for));
    }
  }
}

Format read_format(const std::string& word, const CommandRecord& command) {
  const auto at = std::find(format_names.begin(), format_names.end(), word);
  if (at == format_names.end() || !contains_word(command.formats, word)) {
    usage(fmt::format("'{}' does not print the format {}", command.name, costmodel::quote(word)),
          fmt::format("allowed: {}", command.formats));
  }
  return static_cast<Format>(at - format_names.begin());
}

// Reads a number from 1 to 1,000; `what` is the unit for the message.
int read_number(const char* flag, const char* what, const std::string& text) {
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  const int n = digits && text.size() <= 4 ? std::stoi(text) : 0;
  if (n < 1 || n > 1000) {
    usage(fmt::format("--{} {} is not a number of {}", flag, costmodel::shortened(text), what),
          "allowed: 1 to 1,000");
  }
  return n;
}

double read_positive(const char* flag, const char* what, const std::string& text) {
  const auto parsed = costmodel::parse_quantity(text, costmodel::Dimension::count);
  if (!parsed.value || *parsed.value <= 0) {
    usage(fmt::format("--{} {} is not {}", flag, costmodel::shortened(text), what),
          fmt::format("example: --{} 12", flag));
  }
  return *parsed.value;
}

// Checks the options of --against-planner.
void check_comparison(const po::variables_map& values, const Options& options) {
  const auto given = [&](const char* name) {
    return values.count(name) != 0 && !values[name].defaulted();
  };
  if (!options.against_planner) {
    for (const char* flag : {"strategy", "threads"}) {
      const bool fits = flag == std::string("threads") && options.fits_constants();
      if (given(flag) && !fits)
        usage(fmt::format("--{} is of no use to validate alone", flag), "add --against-planner");
    }
    return;
  }
  for (const char* flag : {"fit", "leave-one-source-out", "write-residuals"}) {
    if (given(flag))
      usage(fmt::format("--{} does not go with --against-planner", flag), "leave one out");
  }
  if (options.strategy != "grid" && options.strategy != "alpa") {
    usage(fmt::format("--against-planner has no --strategy {}",
                      costmodel::shortened(options.strategy)),
          "allowed: grid, alpa");
  }
}

// Checks the options of `plan`'s search and its limits.
void read_strategy(const po::variables_map& values, Options& options) {
  const auto given = [&](const char* name) { return values.count(name) != 0; };
  options.strategy_given = given("strategy");
  if (options.strategy_given) options.strategy = values["strategy"].as<std::string>();
  const std::vector<std::string> known{"grid", "alpa", "both", "meshes"};
  if (std::find(known.begin(), known.end(), options.strategy) == known.end()) {
    usage(fmt::format("--strategy {} is not known", costmodel::shortened(options.strategy)),
          costmodel::known_names(options.strategy, known));
  }
  for (const char* flag : {"time-limit", "threads"}) {
    const bool grid = given("strategy") && options.strategy == "grid";
    if (given(flag) && grid && options.command == "plan")
      usage(fmt::format("--{} does not go with --strategy grid", flag), "add --strategy alpa");
  }
  if (given("time-limit")) {
    options.time_limit =
        read_positive("time-limit", "a time in seconds", values["time-limit"].as<std::string>());
  }
  if (given("threads"))
    options.threads = read_number("threads", "threads", values["threads"].as<std::string>());
}

void read_command(const po::variables_map& values, Options& options) {
  const CommandRecord* command = find_command(options.command);
  if (command == nullptr) {
    usage(fmt::format("unknown command {}", costmodel::quote(options.command)),
          costmodel::known_names(options.command, command_names()));
  }
  if (options.help) return;
  check_flags(values, *command);
  if (options.operands.size() < command->least || options.operands.size() > command->most) {
    const std::size_t words = options.operands.size();
    usage(fmt::format("'{}' takes {}, {} given", command->name, command->operands,
                      words == 0   ? "nothing is"
                      : words == 1 ? "one word is"
                                   : fmt::format("{} words are", words)),
          fmt::format("example: {}", command->example));
  }
  if (values.count("format") != 0)
    options.format = read_format(values["format"].as<std::string>(), *command);
}

}  // namespace

Options parse_command_line(int count, const char* const* arguments) {
  const auto values = parsed(count, arguments);
  Options options;
  const auto text = [&](const char* name, std::string& field) {
    if (values.count(name) != 0) field = values[name].as<std::string>();
  };
  const auto list = [&](const char* name, std::vector<std::string>& field) {
    if (values.count(name) != 0) field = values[name].as<std::vector<std::string>>();
  };
  list("operand", options.operands);
  if (!options.operands.empty()) {
    options.command = options.operands.front();
    options.operands.erase(options.operands.begin());
  }
  text("out", options.out);
  text("trace", options.trace);
  text("write-schedule", options.write_schedule);
  text("placement", options.placement);
  text("fit", options.fit);
  text("to", options.to);
  text("write-residuals", options.write_residuals);
  text("notes", options.notes);
  text("color", options.color);
  list("config-path", options.config_path);
  list("set", options.assignments);
  list("over", options.over);
  options.quiet = values["quiet"].as<bool>();
  options.rows = values["rows"].as<bool>();
  options.against_planner = values["against-planner"].as<bool>();
  options.leave_one_source_out = values["leave-one-source-out"].as<bool>();
  options.help = values["help"].as<bool>();
  options.version = values["version"].as<bool>();
  if (values.count("fail-above") != 0) {
    options.fail_above =
        read_positive("fail-above", "a per cent", values["fail-above"].as<std::string>());
  }
  if (values.count("top") != 0)
    options.top = read_number("top", "plans", values["top"].as<std::string>());
  if (options.color != "auto" && options.color != "always" && options.color != "never") {
    usage(fmt::format("--color {} is not known", costmodel::shortened(options.color)),
          "allowed: auto, always, never");
  }
  if (options.command.empty()) {
    if (!options.help && !options.version) usage("no command is given", "see shardplan --help");
    return options;
  }
  read_strategy(values, options);
  if (options.command == "validate") check_comparison(values, options);
  read_command(values, options);
  return options;
}

std::string help_text(const std::string& name) {
  std::string text;
  if (const CommandRecord* command = find_command(name)) {
    text = fmt::format(
        "usage: shardplan {} {} [flags]\n\n{}\n\nexample: {}\nformats: {}\n\nflags:\n",
        command->name, command->operands, command->help, command->example, command->formats);
    for (const auto& flag : flags) {
      if (flag.only_for.empty() || contains_word(flag.only_for, name)) text += flag_line(flag);
    }
    return text;
  }
  text =
      "usage: shardplan COMMAND ... [flags]\n\nHow to train a transformer on many accelerators: "
      "time, memory and traffic of a parallel plan, and the best plan.\n\ncommands:\n";
  for (const auto& command : commands) {
    text += fmt::format("  {:<22} {}\n",
                        fmt::format("{} {}", command.name,
                                    command.operands.size() > 12 ? "KIND" : command.operands),
                        command.help);
  }
  text += "\nflags:\n";
  for (const auto& flag : flags) text += flag_line(flag);
  return text +
         "\nexit status: 0 done; 1 an internal fault; 2 bad usage or bad input; 3 no plan fits; 4 "
         "a run failed or missed its limit\n";
}

}  // namespace planner
