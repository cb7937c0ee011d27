#include "planner/batch/json_row.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "costmodel/base/error.hpp"
#include "costmodel/base/json_text.hpp"
#include "costmodel/base/unit_text.hpp"

namespace planner {

using Json = nlohmann::ordered_json;
using namespace costmodel;

namespace {

constexpr std::array<std::string_view, 4> state_names{"done", "no plan", "failed", "not done"};
constexpr double gib = 1 << 30;

// Figures of one evaluated plan.
void take_plan(const Json& report, Json& row) {
  const Json& time = report.at("time");
  row["iteration_s"] = time.at("iteration_s");
  row["low_s"] = time.at("interval_s").at(0);
  row["high_s"] = time.at("interval_s").at(1);
  row["tokens_per_s"] = report.at("throughput").at("tokens_per_s");
  row["mfu"] = report.at("throughput").at("mfu");
  row["peak_bytes"] = report.at("memory").at("peak_bytes");
  row["capacity_bytes"] = report.at("memory").at("capacity_bytes");
  row["fits"] = report.at("memory").at("fits");
  if (row["fits"] == false) row["message"] = "does not fit in memory";
  row["devices"] = report.at("plan").at("devices");
  row["plan"] = report.value("plan_text", "");
}

std::string time_text(const Json& row, const char* key) {
  const Json& value = row.at(key);
  return value.is_number() ? format_seconds(costmodel::Seconds(value.get<double>())) : "-";
}

// Figures of a plan of serving, which has no iteration: its tokens/s are those of answers.
void take_serving(const Json& report, Json& row) {
  row["fits"] = report.at("fits");
  row["devices"] = report.at("plan").at("devices");
  row["plan"] = report.value("plan_text", "");
  row["capacity_bytes"] = report.at("memory").at("device_bytes");
  if (row["fits"] == false) {
    row["message"] = "does not fit in memory";
    return;
  }
  row["tokens_per_s"] = report.at("output_tokens_per_s");
  const auto time = [&](const char* name) { return time_text(report.at(name), "mean_s"); };
  row["message"] = fmt::format("{}first token {}, next tokens {}",
                               report.value("saturated", false) ? "overloaded; " : "",
                               time("first_token"), time("next_token"));
}

// Figures of the fastest point of a sweep that fits.
void take_points(const Json& points, Json& row) {
  const Json* best = nullptr;
  for (const Json& point : points) {
    const auto time = point.find("iteration_s");
    if (time == point.end() || !time->is_number() || !point.value("fits", false)) continue;
    if (best == nullptr || *time < best->at("iteration_s")) best = &point;
  }
  if (best == nullptr) return;
  row["iteration_s"] = best->at("iteration_s");
  row["tokens_per_s"] = best->at("tokens_per_s");
  row["mfu"] = best->at("mfu");
  row["peak_bytes"] = best->at("peak_gib").get<double>() * gib;
  row["fits"] = true;
  std::string where = fmt::format("fastest of {} points:", points.size());
  for (const auto& [key, value] : best->items()) {
    if (key == "dp") break;  // after it come results
    if (key == "format_version" || key == "program") continue;
    where +=
        fmt::format(" {} {}", key, value.is_string() ? value.get<std::string>() : json_line(value));
  }
  row["plan"] = where;
}

std::string told(const Json& row, const char* key, bool for_people, double unit, int digits) {
  const Json& value = row.at(key);
  if (!value.is_number()) return for_people ? "-" : "";
  const double number = value.get<double>() / unit;
  return for_people ? fmt::format("{:.{}f}", number, digits) : fmt::format("{:.10g}", number);
}

std::string word(const Json& row, const char* key) {
  const Json& value = row.at(key);
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : json_line(value);
}

void take_report(const Json& json, Json& row) {
  if (json.is_array()) {
    take_points(json, row);
  } else if (json.is_object() && json.value("workload", "") == "inference") {
    if (!json.contains("plans")) {
      take_serving(json, row);
    } else if (!json.at("plans").empty()) {
      take_serving(json.at("plans").at(0), row);
    } else if (!json.at("remedies").empty()) {
      row["message"] = json.at("remedies").at(0);
    }
  } else if (json.contains("plans") && json.at("best").is_number()) {
    take_plan(json.at("plans").at(json.at("best").get<std::size_t>()), row);
  } else if (json.contains("time") && json.contains("throughput")) {
    take_plan(json, row);
  } else if (json.contains("traceEvents")) {
    row["iteration_s"] = json.at("iteration_s");
  } else if (json.contains("obstacles") && !json.at("obstacles").empty()) {
    row["message"] = json.at("obstacles").at(0);
  }
}

// Whether the figures that a report gave are what a row has: it may be another's.
bool is_row(const Json& row) {
  for (const auto& [key, value] : row.items()) {
    const bool text =
        key == "plan" || key == "message" || key == "name" || key == "command" || key == "status";
    const bool right = text            ? value.is_string()
                       : key == "fits" ? value.is_boolean()
                                       : value.is_number();
    if (!value.is_null() && !right) return false;
  }
  return true;
}

}  // namespace

std::string index_row(const std::string& name, const std::string& command, JobState state,
                      const std::string& report, const std::string& message) {
  Json row{{"name", name}, {"command", command}, {"status", state_names.at(std::size_t(state))}};
  for (const char* key : {"iteration_s", "low_s", "high_s", "tokens_per_s", "mfu", "peak_bytes",
                          "capacity_bytes", "fits", "devices", "plan"})
    row[key] = nullptr;
  row["message"] = message.empty() ? Json() : Json(message);
  if (report.empty()) return json_line(row);
  try {
    const Json json = parse_json(report, name);
    if (!json.is_structured()) return "";
    take_report(json, row);
  } catch (const ConfigError&) {
    return "";
  } catch (const Json::exception&) {
    return "";
  }
  return is_row(row) ? json_line(row) : "";
}

std::string index_json(const std::vector<std::string>& rows) {
  Json all{{"counts", Json::object()}, {"scenarios", Json::array()}};
  for (const auto name : state_names) all["counts"][std::string(name)] = 0;
  for (const auto& text : rows) {
    Json row = own_json(text);
    Json& count = all["counts"][row.at("status").get<std::string>()];
    count = count.get<int>() + 1;
    all["scenarios"].push_back(std::move(row));
  }
  return json_text(all);
}

Table index_table(const std::vector<std::string>& rows, bool for_people) {
  Table table{{left("scenario"), left("command", 2), left("status", 0)}};
  const auto add = [&](const char* title, const char* key, int optional) {
    table.columns.push_back({for_people ? title : key, true, optional});
  };
  add("iteration", "iteration_s", 1);
  add("from", "low_s", 4);
  add("to", "high_s", 4);
  add("tokens/s", "tokens_per_s", 2);
  add("MFU %", "mfu_pct", 3);
  add("peak GiB", "peak_gib", 1);
  add("of GiB", "capacity_gib", 3);
  add("devices", "devices", 3);
  table.columns.push_back({"plan", false});
  table.columns.push_back({"message", false, 0});
  for (const auto& text : rows) {
    const Json row = own_json(text);
    std::vector<std::string> cells{word(row, "name"), word(row, "command"), word(row, "status")};
    for (const char* key : {"iteration_s", "low_s", "high_s"})
      cells.push_back(for_people ? time_text(row, key) : told(row, key, false, 1, 0));
    cells.push_back(told(row, "tokens_per_s", for_people, 1, 0));
    cells.push_back(told(row, "mfu", for_people, 0.01, 1));
    cells.push_back(told(row, "peak_bytes", for_people, gib, 1));
    cells.push_back(told(row, "capacity_bytes", for_people, gib, 1));
    cells.push_back(told(row, "devices", for_people, 1, 0));
    cells.push_back(word(row, "plan"));
    cells.push_back(word(row, "message"));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace planner
