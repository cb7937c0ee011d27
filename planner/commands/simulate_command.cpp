#include "planner/commands/simulate_command.hpp"

#include <fmt/format.h>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/output_file.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "costmodel/schedule/timeline.hpp"
#include "planner/commands/plan_warnings.hpp"

namespace planner {

using costmodel::Evaluator;
using costmodel::Scenario;
using costmodel::write_file;

CommandResult simulate_command(const Session& session) {
  Scenario s = load(session);
  const auto plan = settled_plan(s);
  if (!plan) return without_plan(session, s);
  Evaluator evaluator = evaluator_of(s);
  const auto timeline = evaluator.timeline(*plan);
  CommandResult result;
  result.warnings = plan_warnings(session.options, s, evaluator.estimate(*plan));
  if (!session.options.trace.empty()) {
    write_file(session.options.trace, to_chrome_trace(timeline));
    result.warnings.push_back("trace written to " + costmodel::shell_word(session.options.trace) +
                              " (open it in ui.perfetto.dev)");
  }
  if (session.options.format == Format::json) {
    result.text = to_chrome_trace(timeline);
    return result;
  }
  result.text =
      heading(s, session.style) + "\n" + escaped(to_string(*plan), session.style) + "\n\n";
  result.text += fmt::format(
      "{} from start to end; f forward, B {}, d data parallel, o optimizer, . idle\n",
      format_seconds(timeline.end()),
      splits_backward(plan->schedule) ? "input gradient, w weight gradient" : "backward");
  result.text += to_chart(timeline, 100);
  return result;
}

}  // namespace planner
