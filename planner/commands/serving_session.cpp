#include "planner/commands/serving_session.hpp"

#include <fmt/format.h>

#include <utility>

#include "costmodel/config/yaml.hpp"
#include "costmodel/serving/engine.hpp"
#include "costmodel/serving/serving_reader.hpp"
#include "planner/page/serving_page.hpp"
#include "planner/report/json_serving.hpp"
#include "planner/report/serving_report.hpp"

namespace planner {

using namespace costmodel;

// What adds a part to a report of training has nothing to say of serving.
void refuse_training_flags(const Options& options) {
  const std::pair<bool, const char*> flags[]{
      {options.front, "--front"},
      {options.sensitivity, "--sensitivity"},
      {options.upgrades, "--upgrades"},
      {options.limits.any(), "--deadline and --budget"},
      {!options.strategy.empty(), "--strategy"},
      {!options.placement.empty(), "--placement"},
  };
  for (const auto& [asked, flag] : flags) {
    if (!asked) continue;
    throw ConfigError({}, fmt::format("shardplan: {} goes with training, not with serving", flag),
                      "leave it out; plan's report of serving has a front of its own");
  }
}

ServingScenario load_serving(const Session& session) {
  refuse_training_flags(session.options);
  ServingScenario s =
      costmodel::load_serving(file_of(session), session.path, session.options.assignments);
  require_outputs(session.options);
  return s;
}

std::string serving_yaml(const Session& session, const ServingScenario& chosen) {
  Value root = serving_tree(file_of(session), session.path, session.options.assignments);
  const auto number = [](std::int64_t n) { return scalar_value(std::to_string(n)); };
  const auto sizes_value = [&](const ServingSizes& sizes) {
    Value map;
    map.set("tp", number(sizes.tp));
    map.set("pp", number(sizes.pp));
    map.set("ep", number(sizes.ep));
    map.set("dp", number(sizes.dp));
    return map;
  };
  Value plan;
  if (chosen.plan.disaggregation) {
    Value pools;
    pools.set("prefill", sizes_value(chosen.plan.disaggregation->prefill));
    pools.set("decode", sizes_value(chosen.plan.disaggregation->decode));
    plan.set("disaggregation", pools);
  } else {
    plan = sizes_value(sizes_of(chosen));
  }
  root.set("plan", plan);
  Value& serving = *root.find("serving");
  serving.set("weights", scalar_value(std::string(to_string(chosen.serving.weights))));
  serving.set("max_num_seqs", number(chosen.serving.limits.max_num_seqs));
  serving.set("max_num_batched_tokens", number(chosen.serving.limits.max_num_batched_tokens));
  root.erase("assumed");
  return to_yaml(root);
}

CommandResult without_serving_plan(const Session& session, const ServingScenario& s) {
  const auto fit = find_serving_fit(session.path);
  const ServingSearch found = search_serving(s, 1);
  CommandResult result =
      session.options.format == Format::json
          ? CommandResult{no_answer, serving_search_json(s, found, fit), {}}
          : unanswered(session, serving_search_report(s, found, fit, session.style));
  if (wants_page(session.options)) result.page = serving_search_page(s, found, fit);
  return result;
}

}  // namespace planner
