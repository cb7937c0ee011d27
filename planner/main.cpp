#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/output_file.hpp"
#include "planner/commands/commands.hpp"
#include "planner/commands/options.hpp"
#include "planner/commands/other_programs.hpp"

namespace {

bool wants_color(const planner::Options& options) {
  if (options.color == "always") return options.out.empty();
  return options.color == "auto" && options.out.empty() && isatty(STDOUT_FILENO) == 1 &&
         options.format == planner::Format::text;
}

void print(std::FILE* stream, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stream);
}

int run(int count, char** arguments) {
  if (planner::is_handed_over(count, arguments)) planner::hand_over(count, arguments);
  const planner::Options options = planner::parse_command_line(count, arguments);
  if (options.version) {
    print(stdout, "shardplan " SHARDPLAN_VERSION "\n");
    return 0;
  }
  if (options.help) {
    print(stdout, planner::help_text(options.command));
    return 0;
  }
  const planner::CommandResult result = planner::run_command(options, {wants_color(options)});
  if (!options.quiet) {
    for (const auto& warning : result.warnings)
      print(stderr, costmodel::message_text(warning) + "\n");
  }
  if (!result.failure.empty()) {
    print(stderr, result.failure);
  } else if (options.out.empty()) {
    print(stdout, result.text);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      throw costmodel::ConfigError({}, "shardplan: standard output cannot be written",
                                   "is the disk full?");
    }
  } else {
    costmodel::write_file(options.out, result.text);
  }
  return result.status;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run(count, arguments);
  } catch (const costmodel::ConfigError& fault) {
    print(stderr, std::string(fault.what()) + "\n");
    return 2;
  } catch (const costmodel::InternalError& fault) {
    print(stderr, "shardplan: " + costmodel::message_text(fault.what()) + "\n");
    return 1;
  } catch (const std::exception& fault) {
    print(stderr, "shardplan: internal fault: " + costmodel::message_text(fault.what()) + "\n");
    return 1;
  }
}
