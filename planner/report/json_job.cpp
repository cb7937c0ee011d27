#include "planner/report/json_job.hpp"

#include <nlohmann/json.hpp>

#include "costmodel/base/json_text.hpp"
#include "planner/report/json_plan.hpp"
#include "planner/report/log_report.hpp"

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
                    {"what", c.what},
                    {"remedy", c.remedy},
                    {"test", c.test},
                    {"iteration_s", c.predicted.iteration.value},
                    {"gained_s", c.gained.value}});
  }
  return list;
}

Json refusals_json(const JobDiagnosis& d) {
  Json list = Json::array();
  for (const Refusal& r : d.refusals)
    list.push_back({{"name", r.name}, {"what", r.what}, {"remedy", r.remedy}});
  return list;
}

Json series_json(const TrainingLog& log) {
  const Pace& pace = log.pace;
  return {{"shape", series_shape_names[static_cast<std::size_t>(pace.shape)]},
          {"early_s", pace.early.value},
          {"late_s", pace.late.value},
          {"growth_s", pace.growth},
          {"since", pace.since},
          {"restarts", log.restarts}};
}

Json signs_json(const TrainingLog& log) {
  Json list = Json::array();
  for (const LogSign& sign : log.signs) {
    list.push_back({{"what", sign_text(sign.kind)},
                    {"line", sign.row},
                    {"count", sign.count},
                    {"text", sign.line}});
  }
  return list;
}

Json ranks_json(const TrainingLog& log) {
  Json list = Json::array();
  for (const RankMemory& rank : log.ranks) {
    list.push_back({{"rank", rank.rank},
                    {"allocated_bytes", rank.allocated.value},
                    {"reserved_bytes", rank.reserved.value}});
  }
  return list;
}

Json memory_json_of(const MemoryAnswer& a) {
  return {{"wanted_bytes", seconds_or_null(a.failed.wanted.value)},
          {"rank", a.failed.rank < 0 ? Json() : Json(a.failed.rank)},
          {"stage", a.stage},
          {"where", failed_in_text(a.failed.where)},
          {"tensor", a.tensor},
          {"predicted_fits", a.predicted_fits},
          {"prediction_low_by", a.low_by},
          {"changes", fitting_changes_json(a.changes)}};
}

Json measured_json(const TrainingLog& log) {
  Json slow = Json::array();
  for (const LoggedIteration& one : log.pace.slow)
    slow.push_back({{"iteration", one.number}, {"iteration_s", one.time.value}});
  Json settings = Json::object();
  for (const LoggedSetting& one : log.settings) settings[one.key] = one.value;
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
          {"said", settings},
          {"series", series_json(log)},
          {"signs", signs_json(log)},
          {"ranks", ranks_json(log)}};
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
    if (d.refusals.empty()) {
      json["cause"] = d.culprits.front().name;
      json["causes"] = causes_json(d);
      if (!d.inseparable.empty()) json["inseparable"] = d.inseparable;
    } else {
      json["cause"] = d.refusals.front().name;
      json["refused"] = refusals_json(d);
    }
    for (const RuledOut& r : d.ruled_out)
      json["ruled_out"].push_back({{"name", r.name}, {"key", r.key}, {"log", r.value}});
    for (const Contradiction& c : d.contradictions) {
      json["contradictions"].push_back({{"key", c.key}, {"scenario", c.scenario}, {"log", c.log}});
    }
    json["parts"] = parts_json(d, *job.log);
  }
  if (job.log) {
    json["log"] = job.log_file;
    json["measured"] = measured_json(*job.log);
  }
  if (job.memory) {
    json["cause"] = "out-of-memory";
    json["out_of_memory"] = memory_json_of(*job.memory);
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
