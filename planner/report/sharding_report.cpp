#include "planner/report/sharding_report.hpp"

#include <fmt/format.h>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "planner/sharding/known_schemes.hpp"

namespace planner {

using namespace costmodel;

namespace {

std::string compared(const StageSharding& s) {
  if (s.hand.choice.empty())
    return fmt::format("The plan's own sharding is none of these: {}.", s.hand.reason);
  const auto own = fmt::format("The plan's own sharding takes {} and {} by the same prices",
                               format_seconds(Seconds(s.hand.price.seconds)),
                               format_bytes(Bytes(s.hand.price.bytes)));
  if (s.hand.price.bytes > s.graph.problem.memory_limit)
    return own + ", which is more memory than there is.";
  if (s.hand.price.seconds <= s.found.seconds) {
    const bool proved = s.found.lower_bound >= s.hand.price.seconds;
    return own + (proved ? ": it is the best." : ": nothing quicker was found.");
  }
  return own +
         fmt::format(": {:.2f} % longer.", 100 * (s.hand.price.seconds / s.found.seconds - 1));
}

std::string proved(const Sharding& found) {
  if (found.lower_bound >= found.seconds)
    return "Proved: no choice among these strategies takes less.";
  return fmt::format(
      "Proved: no choice among these strategies takes less than {}: a gap of {:.2f} %.",
      format_seconds(Seconds(found.lower_bound)), 100 * (found.seconds / found.lower_bound - 1));
}

std::string listed(const std::vector<Exchange>& exchanges) {
  std::string text;
  for (const Exchange& e : exchanges) text += (text.empty() ? "" : ", ") + to_string(e);
  return text;
}

}  // namespace

std::vector<std::string> sharding_sentences(const StageSharding& s) {
  const DeviceMesh& mesh = s.graph.spec.mesh;
  std::vector<std::string> lines;
  lines.push_back(fmt::format(
      "Every operator of the stage the iteration waits for, on its mesh of {} x {} devices (axis 0 "
      "x axis 1), by Alpa's integer program: {} operators, {} strategies.",
      mesh.size(0), mesh.size(1), s.graph.nodes.size(), [&] {
        std::size_t n = 0;
        for (const auto& choices : s.graph.problem.nodes) n += choices.size();
        return n;
      }()));
  if (s.found.choice.empty()) {
    lines.push_back(fmt::format("There is no sharding: {}.", s.found.reason));
    return lines;
  }
  for (const AlikeLayers& alike : alike_layers(s.graph, s.found.choice)) {
    const std::string layers = told(s.graph, alike) + ": ";
    for (const auto& name : known_names(s.graph, alike, s.found.choice)) {
      const bool once = name.compare(0, layers.size(), layers) == 0;  // "embedding: embedding:"
      lines.push_back((once ? name : layers + name) + ".");
    }
  }
  lines.push_back(
      fmt::format("The stage takes {} an iteration, with what the stack leaves exposed of "
                  "communication, and {} "
                  "for states and kept activations of {} that are there.",
                  format_seconds(Seconds(s.found.seconds)), format_bytes(Bytes(s.found.bytes)),
                  format_bytes(Bytes(s.graph.problem.memory_limit))));
  lines.push_back(compared(s));
  lines.push_back(proved(s.found));
  return lines;
}

namespace {

// "token embedding (rows over axis 1) and 3 more".
std::string told_unlike(const StageSharding& s, const std::vector<std::size_t>& nodes) {
  const std::size_t first = nodes.front();
  const std::string text =
      fmt::format("{} ({})", s.graph.site(first).node.name(),
                  to_string(s.graph.strategy(first, s.found.choice), s.graph.spec.mesh));
  return nodes.size() == 1 ? text : fmt::format("{} and {} more", text, nodes.size() - 1);
}

// What the plan cuts otherwise than the integer program, and what that is worth.
std::string unlike_sentence(const ShardedStage& s) {
  const double gain = s.as_plan->unlike_gain.value;
  const std::string worth =
      gain >= 0
          ? fmt::format("worth {} an iteration", format_seconds(Seconds(gain)))
          : fmt::format("{} more an iteration, for less memory", format_seconds(Seconds(-gain)));
  const std::string what = told_unlike(s.sharding, s.as_plan->unlike);
  if (s.refused) return fmt::format("It does not cut {}: {} by the program's prices.", what, worth);
  return fmt::format("No plan has words for {}: {} by the program's prices.", what, worth);
}

}  // namespace

std::vector<std::string> as_plan_sentences(const ShardedStage& s) {
  std::vector<std::string> lines;
  if (s.sharding.found.choice.empty()) return lines;
  if (s.refused) {
    lines.push_back(fmt::format("Nearest to it is {}, which cannot be: {}.",
                                to_string(s.refused->plan), s.reason));
  }
  if (!s.as_plan) {
    lines.emplace_back("No plan that the scenario and its stack allow cuts the stage so.");
    return lines;
  }
  const Estimate& e = *s.estimate;
  const char* const verdict = s.better ? "; it leads the ranking" : s.fits ? "" : ": too much";
  lines.push_back(
      s.same ? "As a plan it is the one above."
             : fmt::format("As a plan it is {}: {} an iteration as `evaluate` prices it, {} on the "
                           "fullest device{}.",
                           to_string(e.plan), format_seconds(e.iteration), format_bytes(e.peak),
                           verdict));
  if (!s.as_plan->unlike.empty()) lines.push_back(unlike_sentence(s));
  return lines;
}

Table sharding_table(const StageSharding& s) {
  Table t{{left("layers"), left("operator"), left("strategy"), "compute", "communication",
           "resharding", left("collectives")}};
  for (const AlikeLayers& alike : alike_layers(s.graph, s.found.choice)) {
    std::string layers = told(s.graph, alike);
    for (const std::size_t v : alike.nodes) {
      const OperatorStrategy& o = s.graph.strategy(v, s.found.choice);
      std::vector<Exchange> all = o.forward;
      for (const auto* more : {&o.backward, &o.ending})
        all.insert(all.end(), more->begin(), more->end());
      t.rows.push_back({layers, std::string(s.graph.site(v).node.name()),
                        to_string(o, s.graph.spec.mesh), format_seconds(o.compute + o.optimizer),
                        format_seconds(o.communication),
                        format_seconds(resharding_time(s.graph, v, s.found.choice)), listed(all)});
      layers.clear();
    }
  }
  return t;
}

}  // namespace planner
