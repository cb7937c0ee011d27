#include "planner/accuracy/json_traces.hpp"

#include <nlohmann/json.hpp>

#include "costmodel/base/json_text.hpp"
#include "planner/accuracy/trace_explanation.hpp"

namespace planner {

using Json = nlohmann::ordered_json;

namespace {

Json kinds_of(const FittedTrace& trace) {
  Json kinds = Json::array();
  const auto steady = trace.read.steady();
  for (std::size_t kind = 0; kind < costmodel::kernel_kind_count; ++kind) {
    kinds.push_back({{"kind", costmodel::kernel_kind_keys[kind]},
                     {"measured_s", trace.read.times.kinds[kind].value},
                     {"steady_s", steady[kind].value},
                     {"predicted_s", trace.before.kinds[kind]},
                     {"with_trace_s", trace.after.kinds[kind]}});
  }
  return kinds;
}

Json of(const FittedTrace& trace) {
  const TraceTimes& times = trace.read.times;
  Json operators = Json::array(), left_over = Json::array();
  for (const PartTime& part : times.parts) {
    operators.push_back({{"operator", name_of(part.part)},
                         {"backward", part.backward},
                         {"kernels", part.kernels},
                         {"measured_s", part.time.value}});
  }
  for (const LeftOver& left : times.left_over) {
    left_over.push_back(
        {{"kernel", left.kernel}, {"launcher", left.launcher}, {"measured_s", left.time.value}});
  }
  return {{"file", trace.read.file},
          {"profiler", trace.read.profiler},
          {"device", trace.read.device},
          {"iterations", times.iterations},
          {"iterations_left_out", times.left_out},
          {"attributed", times.attributed() / times.kernels},
          {"kernels_s", times.kernels.value},
          {"busy_s", times.busy.value},
          {"wall_s", times.wall.value},
          {"communication_s", times.communication.value},
          {"exposed_communication_s", times.exposed.value},
          {"longest_gap_s", times.longest_gap.value},
          {"unprofiled_s", trace.unprofiled.value},
          {"host_bound", trace.host_bound},
          {"predicted_s", trace.before.iteration.value},
          {"predicted_with_trace_s", trace.after.iteration.value},
          {"kinds", kinds_of(trace)},
          {"operators", operators},
          {"not_attributed", left_over}};
}

}  // namespace

std::string traces_json(const std::vector<FittedTrace>& traces, const costmodel::OwnRuns& own) {
  Json all = Json::array();
  for (const FittedTrace& trace : traces) all.push_back(of(trace));
  return costmodel::json_text({{"traces", all},
                               {"stack", own.stack},
                               {"launch_s", own.kernel_launch.value},
                               {"low", own.low},
                               {"high", own.high}});
}

std::string explanation_json(const TraceExplanation& all) {
  Json ranks = Json::array(), gains = Json::array();
  for (const TracedRank& rank : all.ranks) {
    ranks.push_back({{"file", rank.file},
                     {"rank", rank.rank},
                     {"busy_s", rank.times.busy.value},
                     {"kernels_s", rank.times.kernels.value},
                     {"communication_s", rank.times.communication.value}});
  }
  for (const TraceGain& gain : all.gains) {
    gains.push_back(
        {{"what", gain.what}, {"remedy", gain.remedy}, {"gained_s", gain.gained.value}});
  }
  return costmodel::json_text(
      {{"traces", Json::array({of(all.trace)})}, {"ranks", ranks}, {"gains", gains}});
}

std::string actions_json(const Trace& trace, const std::vector<ActionTimes>& ranks) {
  Json all = Json::array();
  for (const ActionTimes& rank : ranks) {
    all.push_back({{"rank", rank.rank},
                   {"forward_s", rank.forward.value},
                   {"backward_s", rank.backward.value},
                   {"idle_s", rank.idle.value},
                   {"predicted_forward_s", rank.predicted_forward.value},
                   {"predicted_backward_s", rank.predicted_backward.value}});
  }
  return costmodel::json_text(
      {{"file", trace.file}, {"iteration_s", trace.iteration.value}, {"ranks", all}});
}

}  // namespace planner
