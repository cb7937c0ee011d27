#include "planner/report/json_memory.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "costmodel/base/json_text.hpp"
#include "planner/report/memory_report.hpp"

namespace planner {

using namespace costmodel;

using Json = nlohmann::ordered_json;

std::string memory_json(const MemoryTrace& trace) {
  const bool known = trace.known();
  Json samples = Json::array();
  for (const MemorySample& own : trace.samples) {
    const bool step = own.pass == MemorySample::Pass::step;
    const auto of_layer = [step](const auto& value) { return step ? Json() : Json(value); };
    Json one = {{"pass", memory_pass_names[static_cast<std::size_t>(own.pass)]},
                {"stage", of_layer(own.stage)},
                {"micro_batch", of_layer(own.micro_batch)},
                {"layer", of_layer(describe(own.layer))},
                {"number", of_layer(own.number)},
                {"operator", own.op.empty() ? Json() : Json(own.op)},
                {"begin_s", own.begin.value},
                {"end_s", own.end.value}};
    for (std::size_t kind = 0; kind < own.held.size(); ++kind)
      one[std::string(memory_kind_names[kind]) + "_bytes"] = own.held[kind].value;
    one["allocated_bytes"] = own.allocated.value;
    one["reserved_bytes"] = own.reserved.value;
    samples.push_back(std::move(one));
  }
  const Json all = {{"allocated_bytes", known ? Json(trace.allocated.value) : Json()},
                    {"reserved_bytes", known ? Json(trace.reserved.value) : Json()},
                    {"peak", known ? Json(trace.peak) : Json()},
                    {"samples", std::move(samples)}};
  return json_text(all);
}

}  // namespace planner
