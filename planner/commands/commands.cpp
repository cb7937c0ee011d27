#include "planner/commands/commands.hpp"

#include <fmt/format.h>

#include "costmodel/base/error.hpp"
#include "planner/commands/evaluate_command.hpp"
#include "planner/commands/explain_command.hpp"
#include "planner/commands/export_command.hpp"
#include "planner/commands/import_command.hpp"
#include "planner/commands/listing.hpp"
#include "planner/commands/plan_command.hpp"
#include "planner/commands/simulate_command.hpp"
#include "planner/commands/sweep.hpp"
#include "planner/commands/validate_command.hpp"

namespace planner {

CommandResult run_command(const Options& options, const Style& style) {
  const Markup markup = options.format == Format::md ? Markup::markdown : Markup::text;
  const Session session{options, {markup, style}, costmodel::config_path(options.config_path)};
  if (options.command == "plan") return plan_command(session);
  if (options.command == "evaluate") return evaluate_command(session);
  if (options.command == "explain") return explain_command(session);
  if (options.command == "sweep") return sweep_command(session);
  if (options.command == "simulate") return simulate_command(session);
  if (options.command == "validate") return validate_command(session);
  if (options.command == "import") return import_command(session);
  if (options.command == "calibrate" || options.command == "run") {
    throw costmodel::ConfigError(
        {}, fmt::format("shardplan: flags stand before '{}'", options.command),
        fmt::format("write shardplan {} first, then its flags", options.command));
  }
  if (options.command == "export") return export_command(session);
  return {0, printed(listing(options.operands.front(), session.path), options.format), {}};
}

}  // namespace planner
