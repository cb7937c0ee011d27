#include "planner/report/json_parts.hpp"

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "costmodel/base/json_text.hpp"
#include "planner/report/json_plan.hpp"
#include "planner/report/machines_report.hpp"
#include "planner/report/sensitivity_report.hpp"

namespace planner {

using namespace costmodel;

using Json = nlohmann::ordered_json;

namespace {

Json change_json(const std::optional<PlanChange>& change) {
  if (!change) return {};
  return {{"value", change->value},
          {"inside", change->inside},
          {"fits", change->fits},
          {"loss", change->loss},
          {"plan", change->best ? printed_plan(*change->best) : Json()}};
}

Json input_json(const InputEffect& e, bool searched) {
  const PricedInput& input = e.input;
  Json json{{"key", input.key},
            {"name", input.name},
            {"unit", std::string(base_unit(input.unit))},
            {"value", input.value},
            {"low", input.low},
            {"high", input.high},
            {"spread", input.spread},
            {"from", input.from},
            {"iteration_low_s", e.at_low.value},
            {"iteration_high_s", e.at_high.value},
            {"effect", e.effect}};
  if (!searched) return json;
  json["below"] = change_json(e.below);
  json["above"] = change_json(e.above);
  return json;
}

}  // namespace

std::string with_members(const std::string& report_json, const FamilyMembers& members) {
  Json json = own_json(report_json);
  for (std::size_t i = 0; i < members.size() && i < json["plans"].size(); ++i) {
    Json& rows = json["plans"][i]["members"] = Json::array();
    for (const Estimate& e : members[i]) {
      rows.push_back({{"iteration_s", e.iteration.value},
                      {"interval_s", {e.interval.low.value, e.interval.high.value}},
                      {"peak_bytes", e.peak.value},
                      {"plan", printed_plan(e)}});
    }
  }
  return json_text(json);
}

namespace {

constexpr std::array<std::string_view, 5> kind_names{"link", "memory", "domain", "devices",
                                                     "device"};

Json gain_json(const UpgradeGain& gain, double price) {
  Json json{{"upgrade", gain.name},
            {"kind", std::string(kind_names[static_cast<std::size_t>(gain.kind)])},
            {"devices", gain.devices},
            {"iteration_s", nullptr},
            {"speedup", nullptr},
            {"speedup_per_cost", nullptr},
            {"pays_up_to", nullptr},
            {"pays_up_to_usd_per_device_hour", nullptr},
            {"same_plan", gain.same_plan},
            {"plan", nullptr}};
  if (!gain.best && !gain.refused.empty()) json["refused"] = gain.refused;
  if (!gain.best) return json;
  json["iteration_s"] = gain.best->iteration.value;
  json["speedup"] = gain.speedup;
  json["plan"] = printed_plan(*gain.best);
  if (gain.speedup_per_cost) {
    json["speedup_per_cost"] = *gain.speedup_per_cost;
    return json;
  }
  json["pays_up_to"] = gain.speedup;
  if (price > 0) json["pays_up_to_usd_per_device_hour"] = gain.speedup * price;
  return json;
}

Json point_json(const FrontPoint& point, double price) {
  const double hours = device_hours_per_billion_tokens(point);
  const Estimate& e = point.plan;
  return {{"devices", point.devices},
          {"iteration_s", e.iteration.value},
          {"tokens_per_s", e.tokens_per_s},
          {"device_hours_per_billion_tokens", hours},
          {"usd_per_billion_tokens", price > 0 ? Json(hours * price) : Json()},
          {"peak_bytes", e.peak.value},
          {"headroom_bytes", (e.capacity - e.peak).value},
          {"on_front", point.on_front},
          {"plan", printed_plan(e)}};
}

std::string with_part(const std::string& report_json, const char* key, const Json& part) {
  Json json = own_json(report_json);
  json[key] = part;
  return json_text(json);
}

}  // namespace

std::string with_remedies(const std::string& report, const std::vector<std::string>& remedies) {
  return with_part(report, "remedies", remedies);
}

std::string with_fitting_changes(const std::string& report, const std::vector<Remedy>& remedies) {
  return with_part(with_remedies(report, sentences_of(remedies)), "fitting_changes",
                   fitting_changes_json(remedies));
}

std::string with_sensitivity(const std::string& report, const Sensitivity& found) {
  Json inputs = Json::array();
  for (const InputEffect& e : found.inputs) inputs.push_back(input_json(e, found.searched));
  return with_part(report, "sensitivity",
                   {{"iteration_s", found.plan.iteration.value},
                    {"searched", found.searched},
                    {"interrupted", found.interrupted},
                    {"inputs", inputs},
                    {"without_effect", found.unmoved},
                    {"sentences", sensitivity_sentences(found)}});
}

std::string with_upgrades(const std::string& report, const UpgradeGains& found, const Scenario& s) {
  Json gains = Json::array();
  for (const UpgradeGain& gain : found.gains)
    gains.push_back(gain_json(gain, s.cluster.operation.usd_per_device_hour));
  return with_part(report, "upgrades",
                   {{"iteration_s", found.without.iteration.value},
                    {"interrupted", found.interrupted},
                    {"gains", gains},
                    {"sentences", upgrade_sentences(found, s)}});
}

std::string with_device_front(const std::string& report, const DeviceFront& front,
                              const Scenario& s) {
  const double price = s.cluster.operation.usd_per_device_hour;
  Json points = Json::array();
  for (const FrontPoint& point : front.points) points.push_back(point_json(point, price));
  return with_part(report, "device_front",
                   {{"usd_per_device_hour", price > 0 ? Json(price) : Json()},
                    {"interrupted", front.interrupted},
                    {"points", points},
                    {"sentences", device_front_sentences(front, s)}});
}

}  // namespace planner
