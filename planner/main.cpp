#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <new>
#include <string>

#include "costmodel/base/console.hpp"
#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/input_file.hpp"
#include "costmodel/base/output_file.hpp"
#include "costmodel/cli/help.hpp"
#include "costmodel/cli/process.hpp"
#include "costmodel/cli/terminal.hpp"
#include "planner/commands/commands.hpp"
#include "planner/commands/help_command.hpp"
#include "planner/commands/options.hpp"
#include "planner/commands/other_programs.hpp"

namespace {

constexpr const char* without_memory =
    "shardplan: the memory that this process may use is exhausted; ask for less: a smaller batch "
    "or "
    "cluster, fewer sizes left open, or --time-limit\n";

bool wants_color(const planner::Options& options) {
  if (options.color == "always") return options.out.empty();
  return options.color == "auto" && options.out.empty() &&
         options.format == planner::Format::text && costmodel::shows_colors(STDOUT_FILENO);
}

std::size_t width_of(const planner::Options& options) {
  constexpr int no_terminal = -1;
  return costmodel::width_of_lines(options.out.empty() ? STDOUT_FILENO : no_terminal);
}

void tell(const std::string& message) {
  costmodel::print_message(costmodel::wrapped(message, costmodel::width_of_lines(STDERR_FILENO)));
}

// The files that were read, one a line.
std::string inputs_text() {
  std::string text;
  for (const auto& file : costmodel::files_read()) text += file + "\n";
  return text;
}

int run(int count, char** arguments) {
  costmodel::require_process("shardplan");
  if (count == 1) {
    tell(planner::opening());
    return 2;
  }
  if (planner::is_handed_over(arguments[1]) && !planner::fits_from_logs(count, arguments) &&
      !planner::only_helps(count, arguments))
    planner::hand_over(count, arguments);
  const planner::Options options =
      planner::parse_command_line(planner::shardplan(), count, arguments);
  if (options.version) {
    costmodel::write_standard_output(planner::version_text());
    return 0;
  }
  if (options.help) {
    const costmodel::Program& all = planner::shardplan();
    const auto named = std::ranges::find(all.commands, options.command, &costmodel::Command::name);
    costmodel::write_standard_output(
        costmodel::help_of(all, named == all.commands.end() ? nullptr : &*named,
                           costmodel::width_of_lines(STDOUT_FILENO)));
    return 0;
  }
  if (!options.out.empty()) costmodel::require_writable(options.out);
  const planner::CommandResult result =
      planner::run_command(options, {wants_color(options), width_of(options)});
  if (!options.quiet) {
    for (const auto& warning : result.warnings) tell(costmodel::message_text(warning) + "\n");
  }
  if (!options.list_inputs.empty()) costmodel::write_file(options.list_inputs, inputs_text());
  if (!result.failure.empty()) {
    tell(result.failure);
  } else if (options.out.empty()) {
    costmodel::write_standard_output(result.text);
  } else {
    costmodel::write_file(options.out, result.text);
  }
  return result.status;
}

}  // namespace

int main(int count, char** arguments) {
  costmodel::print_when_memory_ends(without_memory);
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the shell's limit on files fails with a message
  try {
    return run(count, arguments);
  } catch (const costmodel::ConfigError& fault) {
    tell(std::string(fault.what()) + "\n");
    return 2;
  } catch (const costmodel::InternalError& fault) {
    tell("shardplan: " + costmodel::message_text(fault.what()) + "\n");
    return 1;
  } catch (const std::bad_alloc&) {
    costmodel::print_constant(without_memory);
    return 1;
  } catch (const std::exception& fault) {
    tell("shardplan: internal fault: " + costmodel::message_text(fault.what()) + "\n");
    return 1;
  }
}
