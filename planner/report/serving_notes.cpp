#include "planner/report/serving_notes.hpp"

#include <fmt/format.h>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/serving/serving_reader.hpp"

namespace planner {

using namespace costmodel;

namespace {

using Notes = std::vector<std::string>;

void note_assumptions(const ServingScenario& s, const ServingEstimate& e, Notes& notes) {
  const DeviceSpec& device = s.cluster.device;
  if (!s.model.questioned.empty()) notes.push_back("model: " + s.model.questioned);
  if (e.weights == WeightFormat::fp8 && device.peak_of(Precision::fp8).value <= 0) {
    notes.emplace_back(
        "the device has no fp8 products: fp8 weights are read in 8 bits and multiplied in 16");
  }
  const std::int64_t longest = longest_request(s.serving), most = s.model.context_length;
  if (most > 0 && longest > most) {
    notes.push_back(
        fmt::format("requests of {} tokens, prompt and answer, are more than the {} that the model "
                    "takes: no engine starts so (model.context_length, where positions are scaled)",
                    format_integer(longest), format_integer(most)));
  }
  if (s.serving.length_open) {
    notes.push_back(fmt::format(
        "max_model_len auto: {} tokens, the longest of these requests; the engine refuses longer",
        format_integer(s.serving.max_model_len)));
  }
  if (s.model.towers != nullptr) {
    notes.emplace_back(
        "requests are text: of the model's towers the weights are counted, not the time of images "
        "or sound");
  }
  if (s.model.experts > 0)
    notes.emplace_back("tokens choose their experts evenly and independently of one another");
  if (e.devices < s.cluster.devices) {
    notes.push_back(fmt::format("{} of {} devices are in no replica", s.cluster.devices - e.devices,
                                s.cluster.devices));
  }
  if (s.cluster.measured.runs > 0)
    notes.emplace_back("cluster.measured is of training runs: serving is predicted without it");
  if (s.serving.swap_space.value > 0)
    notes.emplace_back("swap_space holds preempted requests; here they are computed again");
  if (!s.plan.disaggregation) return;
  notes.push_back(fmt::format("{} of {} devices take prompts alone; tokens a device are of all",
                              s.plan.disaggregation->prefill.devices(), e.devices));
}

// An open load so near to the capacity keeps queues longer than a run of some requests shows.
constexpr double nearly_full = 0.9;

void note_load(const ServingScenario& s, const ServingEstimate& e, Notes& notes) {
  if (e.busy < e.sizes.dp) {
    notes.push_back(fmt::format("{:.0f} of {} replicas have no request: there are fewer {}",
                                e.sizes.dp - e.busy, e.sizes.dp,
                                s.serving.concurrency > 0 ? "in flight" : "in the run"));
  }
  const double full = s.serving.arrival_rate / e.capacity;
  if (full > nearly_full && full <= 1) {
    notes.push_back(
        fmt::format("arrivals take {:.0f} % of what the plan can do: latencies are of {} requests "
                    "of a replica, and would still grow over more of them",
                    100 * full, format_integer(e.simulated)));
  }
  const std::int64_t each = ceil_div(s.serving.requests, e.sizes.dp);
  if (e.simulated < each && !e.saturated) {
    notes.push_back(
        fmt::format("{} of {} requests of a replica are simulated: the others come in the middle, "
                    "at its pace",
                    format_integer(e.simulated), format_integer(each)));
  }
  if (e.preempted > 0) {
    notes.push_back(fmt::format(
        "{} times a request was put back for lack of cache and computed again", e.preempted));
  }
}

}  // namespace

std::vector<std::string> serving_notes(const ServingScenario& s, const ServingEstimate& e) {
  Notes notes;
  note_assumptions(s, e, notes);
  if (e.simulated > 0) note_load(s, e, notes);
  return notes;
}

}  // namespace planner
