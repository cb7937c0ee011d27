#include "planner/logs/nccl_tests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/input_file.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/config/map_reader.hpp"
#include "costmodel/config/yaml.hpp"

namespace planner {

using namespace costmodel;

namespace {

// {"rank": 0, "group": 0, "pid": 1, "hostname": "a", "device": 0, "device_hex": ..., "device_info":
// ...}
void read_devices(MapReader& config, NcclTable& table) {
  const Value& devices = config.required("devices");
  const auto in_process = config.integer("nthreads", {1, 1'000'000}).value_or(1) *
                          config.integer("ngpus", {1, 1'000'000}).value_or(1);
  std::set<std::string> hosts;
  std::int64_t last = 0;
  for (const Value& item : devices.items) {
    MapReader device(item, "device");
    last = std::max(last, device.integer("rank", {0, 100'000'000}).value_or(0));
    device.required("hostname");
    hosts.insert(*device.text("hostname"));
    if (table.device.empty()) table.device = device.text("device_info").value_or("");
  }
  // nccl-tests 2.17 lists the first device of each process only.
  const auto listed = static_cast<std::int64_t>(devices.items.size());
  const bool all = listed == last + 1 && listed % in_process == 0;
  table.ranks = static_cast<int>(all ? listed : last + in_process);
  table.nodes = static_cast<int>(hosts.size());
  if (listed == 0)
    throw ConfigError(devices.mark, "the report names no devices", "keep config.devices");
}

std::optional<NcclTiming> read_timing(MapReader& result, std::string_view key) {
  const Value* value = result.optional(key);
  if (value == nullptr) return std::nullopt;
  MapReader reader(*value, std::string(key));
  const auto rate = [&](std::string_view name) {
    return reader.number(name, Dimension::count, 0, 1e15).value_or(0);
  };
  NcclTiming timing;
  const bool host = reader.optional("time") == nullptr && reader.optional("cpu_time") != nullptr;
  if (host) {
    throw ConfigError(value->mark, "holds times of the host only (cpu_time)",
                      "run nccl-tests without --report_cputime");
  }
  reader.required("time");
  timing.time_us = *reader.number("time", Dimension::count, 0, 1e15);
  timing.algorithm_gb_s = rate("alg_bw");
  timing.bus_gb_s = rate("bus_bw");
  if (reader.number("nwrong", Dimension::count, 0, 1e18).value_or(0) >= 1) {
    throw ConfigError(reader.mark_of("nwrong"), "values came out wrong",
                      "a run that computes wrong is no measurement; repair it first");
  }
  return timing;
}

void read_results(const Value& results, NcclTable& table) {
  for (const Value& item : results.items) {
    MapReader result(item, "result");
    NcclRow row;
    row.line = item.mark.line;
    result.required("size");
    row.bytes = *result.number("size", Dimension::size, 0, 1e18);
    row.type = result.text("type").value_or("");
    row.out_of_place = read_timing(result, "out_of_place");
    row.in_place = read_timing(result, "in_place");
    if (row.bytes > 0) table.rows.push_back(row);
  }
  if (table.rows.empty())
    throw ConfigError(results.mark, "the report holds no results", "give a finished run's");
}

std::string program_of(const Value& args) {
  if (args.items.empty())
    throw ConfigError(args.mark, "args is empty", "its first word names the program");
  return file_name_of(args.items.front().text);
}

std::string type_name(const std::string& type) {
  if (type == "float") return "float32";
  if (type == "half") return "float16";
  return type == "double" ? "float64" : type;
}

std::string measured(const NcclRow& row) {
  std::string text;
  const auto add = [&](const std::string& key, double value) {
    if (value > 0) text += fmt::format("{}\"{}\": {}", text.empty() ? "" : ", ", key, value);
  };
  const auto add_all = [&](const std::string& before, const std::optional<NcclTiming>& timing) {
    if (!timing) return;
    add(before + "time_us", timing->time_us);
    add(before + "algbw_gb_s", timing->algorithm_gb_s);
    add(before + "busbw_gb_s", timing->bus_gb_s);
  };
  add_all("", row.out_of_place);
  add_all("in_place_", row.in_place);
  return text;
}

}  // namespace

std::string nccl_operation(const std::string& program) {
  const std::string op = program.substr(0, program.rfind("_perf"));
  if (op == "alltoall") return "all_to_all";
  return op == "sendrecv" ? "send" : op;
}

std::vector<NcclTable> read_nccl_json(const std::string& text, const std::string& file) {
  const Value root = parse_yaml(text, file);
  MapReader reader(root, "nccl-tests report");
  NcclTable table;
  table.mark = root.mark;
  table.op = nccl_operation(program_of(reader.required("args")));
  table.measured = reader.text("start_time").value_or("").substr(0, 10);
  MapReader config(reader.required("config"), "config");
  read_devices(config, table);
  read_results(reader.required("results"), table);
  return {table};
}

std::vector<NcclTable> read_nccl_tests(const std::string& file) {
  const std::string text = read_file(file, measurement_limits);
  const auto first = text.find_first_not_of(" \t\r\n");
  const bool json = first != std::string::npos && text[first] == '{';
  return json ? read_nccl_json(text, file) : read_nccl_text(text, file);
}

std::string to_microbenchmarks(const std::vector<NcclTable>& tables, const std::string& file,
                               bool json) {
  const std::string name = file_name_of(file), stem = stem_of(file);
  std::vector<std::string> entries;
  for (const auto& table : tables) {
    for (const auto& row : table.rows) {
      const std::string figures = measured(row);
      if (figures.empty()) continue;
      const std::string id = fmt::format("{}-{}-{}r{}n-{}-line{}", stem, table.op, table.ranks,
                                         table.nodes, row.bytes, row.line);
      const std::string date = table.measured.empty()
                                   ? ""
                                   : fmt::format(", \"measured\": {}", json_string(table.measured));
      entries.push_back(fmt::format(
          "{{\"id\": {}, \"device\": {}, \"kind\": \"collective\", \"op\": {}, \"shape\": "
          "{{\"bytes\": {}, \"ranks\": {}, \"dtype\": {}}}, \"system\": {{\"nodes\": {}, "
          "\"gpus\": {}}}, \"measured\": {{{}}}, \"source\": {{\"title\": {}, \"where\": {}{}}}}}",
          json_string(id), json_string(table.device), json_string(table.op), row.bytes, table.ranks,
          json_string(type_name(row.type)), table.nodes, table.ranks, figures,
          json_string(fmt::format("nccl-tests {}, {}", table.op, name)),
          json_string(fmt::format("{} line {}", name, row.line)), date));
    }
  }
  if (json) return fmt::format("[\n{}\n]\n", fmt::join(entries, ",\n"));
  return fmt::format("- {}\n", fmt::join(entries, "\n- "));
}

}  // namespace planner
