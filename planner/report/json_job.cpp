#include "planner/report/json_job.hpp"

#include <nlohmann/json.hpp>

#include "costmodel/base/json_text.hpp"
#include "planner/report/json_plan.hpp"

namespace planner {

using namespace costmodel;
using Json = nlohmann::ordered_json;

namespace {

Json seconds_or_null(double value) { return value > 0 ? Json(value) : Json(); }

Json causes_json(const JobDiagnosis& d) {
  Json list = Json::array();
  for (const Culprit& c : d.culprits) {
    list.push_back({{"name", c.name},
                    {"probability", c.probability},
                    {"prior", c.prior},
                    {"prior_because", c.because},
                    {"what", c.told},
                    {"remedy", c.remedy},
                    {"iteration_s", c.predicted.iteration.value},
                    {"gained_s", c.gained.value}});
  }
  return list;
}

Json measured_json(const TrainingLog& log) {
  Json slow = Json::array();
  for (const LoggedIteration& one : log.pace.slow)
    slow.push_back({{"iteration", one.number}, {"iteration_s", one.time.value}});
  Json said = Json::object();
  for (const Saying& one : log.said) said[one.key] = one.value;
  return {{"framework", log.framework},
          {"iteration_s", log.pace.median.value},
          {"spread", log.pace.spread},
          {"lines", log.pace.counted},
          {"warm_up_lines", log.pace.warm_up},
          {"slow", slow},
          {"slow_period", log.pace.period},
          {"allocated_bytes", seconds_or_null(log.allocated.value)},
          {"reserved_bytes", seconds_or_null(log.reserved.value)},
          {"tokens_per_s_per_device", seconds_or_null(log.tokens_per_s_per_device)},
          {"sequences_per_s", seconds_or_null(log.sequences_per_s)},
          {"said", said}};
}

Json parts_json(const JobDiagnosis& d, const TrainingLog& log) {
  Json list = Json::array();
  if (!d.expected.has_parts) return list;
  for (const LoggedPart& part : log.parts) {
    const auto i = static_cast<std::size_t>(part.part);
    const auto range = [](Seconds least, Seconds most) {
      return Json::array({least.value, most.value});
    };
    const PredictedPart &expected = d.expected.parts[i], &cause = d.culprits[0].predicted.parts[i];
    list.push_back({{"part", job_part_names[i]},
                    {"measured_s", range(part.least, part.most)},
                    {"predicted_s", range(expected.least, expected.most)},
                    {"by_cause_s", range(cause.least, cause.most)}});
  }
  return list;
}

Json change_json(const JobChange& c) {
  return {{"knob", c.knob},
          {"change", c.change},
          {"ratio", c.ratio},
          {"interval", {c.low, c.high}},
          {"probability_faster", c.probability},
          {"peak_bytes", c.peak.value},
          {"breaks_fixed", c.breaks_fixed}};
}

}  // namespace

std::string job_json(const JobReport& job, const Scenario& s) {
  Json json{{"scenario", s.name},
            {"log", nullptr},
            {"cause", nullptr},
            {"causes", Json::array()},
            {"ruled_out", Json::array()},
            {"contradictions", Json::array()},
            {"measured", nullptr},
            {"parts", Json::array()},
            {"predicted", evaluation_json(job.estimate, s)}};
  if (job.diagnosis) {
    const JobDiagnosis& d = *job.diagnosis;
    json["log"] = job.log_file;
    json["cause"] = d.culprits.front().name;
    json["causes"] = causes_json(d);
    for (const RuledOut& r : d.ruled_out)
      json["ruled_out"].push_back({{"name", r.name}, {"key", r.key}, {"log", r.value}});
    for (const Contradiction& c : d.contradictions) {
      json["contradictions"].push_back({{"key", c.key}, {"scenario", c.scenario}, {"log", c.log}});
    }
    json["measured"] = measured_json(*job.log);
    json["parts"] = parts_json(d, *job.log);
  }
  json["changes"] = Json::array();
  for (const JobChange& c : job.changes) json["changes"].push_back(change_json(c));
  if (!job.fitting.empty()) json["fitting_changes"] = fitting_changes_json(job.fitting);
  json["best"] = nullptr;
  if (job.best) {
    json["best"] = change_json(job.best->change);
    json["best"]["plan"] = printed_plan(job.best->estimate);
  }
  return json_text(json);
}

}  // namespace planner
