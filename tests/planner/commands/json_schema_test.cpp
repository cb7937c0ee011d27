// Every shipped file is valid by the schema of its kind, and what is broken is not.
#include "planner/commands/json_schema.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "costmodel/base/error.hpp"
#include "costmodel/base/json_text.hpp"
#include "costmodel/config/yaml.hpp"
#include "tests/planner/support/in_process.hpp"

namespace json_schema_test {

using costmodel::Value;
using Json = nlohmann::ordered_json;

namespace {

Json json_of(const Value& value) {
  Json json;
  if (value.is_map()) {
    json = Json::object();
    for (const auto& entry : value.entries) json[entry.key] = json_of(entry.value);
  } else if (value.kind == Value::Kind::sequence) {
    json = Json::array();
    for (const Value& item : value.items) json.push_back(json_of(item));
  } else if (value.is_scalar()) {
    json = value.quoted ? Json(value.text) : costmodel::json_scalar(value.text);
  }
  return json;
}

bool is_of_type(const Json& value, const std::string& type) {
  return (type == "object" && value.is_object()) || (type == "array" && value.is_array()) ||
         (type == "string" && value.is_string()) || (type == "number" && value.is_number()) ||
         (type == "integer" && value.is_number_integer()) ||
         (type == "boolean" && value.is_boolean()) || (type == "null" && value.is_null());
}

// The part of JSON Schema that Shardplan's schemas use. What is wrong where; "" for nothing.
std::string fault(const Json& value, const Json& schema, const Json& all, const std::string& at);

std::string fault_in_parts(const Json& value, const Json& schema, const Json& all,
                           const std::string& at) {
  if (value.is_object()) {
    for (const Json& key : schema.value("required", Json::array()))
      if (!value.contains(key.get<std::string>())) return at + " lacks " + key.get<std::string>();
    const Json properties = schema.value("properties", Json::object());
    for (const auto& [key, item] : value.items()) {
      if (properties.contains(key)) {
        if (auto wrong = fault(item, properties[key], all, at + "." + key); !wrong.empty())
          return wrong;
      } else if (schema.contains("additionalProperties")) {
        return at + " has no " + key;
      }
    }
  }
  if (value.is_array() && schema.contains("items")) {
    for (const Json& item : value)
      if (auto wrong = fault(item, schema["items"], all, at + "[]"); !wrong.empty()) return wrong;
  }
  return "";
}

std::string fault(const Json& value, const Json& schema, const Json& all, const std::string& at) {
  if (schema.contains("$ref")) {
    const std::string place = schema["$ref"].get<std::string>().substr(1);
    return fault(value, all.at(Json::json_pointer(place)), all, at);
  }
  if (schema.contains("anyOf")) {
    std::string first;
    for (const Json& one : schema["anyOf"]) {
      const std::string wrong = fault(value, one, all, at);
      if (wrong.empty()) return "";
      if (first.empty() || wrong.size() > first.size()) first = wrong;
    }
    return first;
  }
  if (schema.contains("const") && schema["const"] != value) return at + " is another word";
  if (schema.contains("enum") && std::ranges::find(schema["enum"], value) == schema["enum"].end())
    return at + " is none of the words";
  if (schema.contains("type")) {
    const Json types = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
    if (std::ranges::none_of(types, [&](const Json& t) { return is_of_type(value, t); }))
      return at + " is of another type";
  }
  if (value.is_number() && schema.contains("minimum") && value < schema["minimum"])
    return at + " is too small";
  if (value.is_number() && schema.contains("maximum") && value > schema["maximum"])
    return at + " is too large";
  if (value.is_string() && schema.contains("pattern") &&
      !std::regex_search(value.get<std::string>(),
                         std::regex(schema["pattern"].get<std::string>())))
    return at + " has another form";
  return fault_in_parts(value, schema, all, at);
}

std::string fault_of(const std::string& yaml, const std::string& kind) {
  static std::map<std::string, Json> schemas;
  if (!schemas.contains(kind)) schemas[kind] = Json::parse(planner::schema_text(kind));
  return fault(json_of(costmodel::parse_yaml(yaml, kind)), schemas[kind], schemas[kind], kind);
}

std::string text_of(const std::filesystem::path& file) {
  return costmodel::read_file(file, costmodel::measurement_limits);
}

void check_files(const std::string& folder, const std::string& ending, const std::string& kind,
                 std::size_t least) {
  std::size_t count = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(SHARDPLAN_SOURCE_DIR + ("/" + folder))) {
    if (entry.path().extension() != ending) continue;
    CAPTURE(entry.path().string());
    CHECK(fault_of(text_of(entry.path()), kind) == "");
    ++count;
  }
  CHECK(count >= least);
}

}  // namespace

TEST_CASE("every shipped file is valid by the schema of its kind") {
  check_files("configs/models", ".yaml", "model", 50);
  check_files("configs/clusters", ".yaml", "cluster", 20);
  check_files("configs/devices", ".yaml", "device", 10);
  check_files("configs/stacks", ".yaml", "stack", 10);
  check_files("configs/engines", ".yaml", "engine", 2);
  check_files("configs/scenarios", ".yaml", "scenario", 20);
  check_files("configs/evidence", ".yaml", "evidence", 40);
}

TEST_CASE("what commands print is valid by the schema of answers") {
  const Json schema = Json::parse(planner::schema_text("answer"));
  CHECK(planner::schema_text("answer").find(": null") == std::string::npos);  // no part is empty
  for (const char* command :
       {"plan tiny-gpt-cpu", "evaluate tiny-gpt-cpu", "explain tiny-gpt-cpu",
        "simulate tiny-gpt-cpu", "sweep tiny-gpt-cpu --over tp=1,2",
        "compare tiny-gpt-cpu --with plan.micro_batch=2", "groups --tp 2 --pp 2",
        "collective all-reduce --bytes 1GiB --ranks 8 --cluster dgx-h100", "list models",
        "plan serve-small-llama-cpu", "evaluate serve-small-llama-cpu",
        "plan llama-3.1-405b --gpus 8xh100", "simulate tiny-gpt-cpu --compare",
        "sweep serve-small-llama-cpu --over tp=1,2", "list clusters", "list keys plan"}) {
    CAPTURE(command);
    const std::string text =
        in_process::run("shardplan " + std::string(command) + " --format json").text;
    CHECK(fault(Json::parse(text), schema, schema, "answer") == "");
  }
  int evaluated = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(SHARDPLAN_SOURCE_DIR "/configs/scenarios")) {
    CAPTURE(entry.path().string());
    const std::string text =
        in_process::printed("evaluate " + entry.path().string() + " --format json");
    if (!text.starts_with('{')) continue;  // devices of several kinds have no plan of their own
    CHECK(fault(Json::parse(text), schema, schema, "answer") == "");
    ++evaluated;
  }
  CHECK(evaluated >= 24);
  const Json good = Json::parse(in_process::run("shardplan evaluate tiny-gpt-cpu -f json").text);
  const auto broken = [&](const char* place, const Json& value) {
    Json answer = good;
    answer[Json::json_pointer(place)] = value;
    return answer;
  };
  for (const Json& wrong :
       {Json(3), Json::array({1}), Json::object(), broken("/format_version", 0),
        broken("/program", "shardplan"), broken("/time/iteration_s", "41.77 ms"),
        broken("/time/breakdown", 1), broken("/memory/stages", Json::object()),
        broken("/memory/fits", "yes"), broken("/notes", "none"),
        broken("/communication/per_device/send_bytes", true), broken("/throughput/mfu", "63 %")}) {
    CAPTURE(wrong.dump());
    CHECK(fault(wrong, schema, schema, "answer") != "");
  }
  CHECK(schema["$defs"]["answer"]["anyOf"][0]["properties"]["time"]["properties"]["iteration_s"] ==
        Json{{"title", "iteration"}, {"description", "seconds"}, {"type", {"null", "number"}}});
}

TEST_CASE("what is broken is refused") {
  const std::string rest = "cluster: {base: dgx-h100, devices: 8}\n";
  for (const char* wrong :
       {"modle: llama-3-8b\n", "model: llama-3-8b\nplan: {tpp: 2}\n",
        "model: llama-3-8b\nplan: {tp: 0}\n", "model: llama-3-8b\nplan: {sequence_parallel: 3}\n",
        "model: llama-3-8b\nplan: {schedule: gpip}\n",
        "model: llama-3-8b\ntraining: {precision: bf17}\n",
        "model: llama-3-8b\ntraining: {global_batch: many}\n",
        "model: {base: llama-3-8b, layer: 3}\n", "model: llama-3-8b\nsearch: {zero: {a: 1}}\n",
        "model: llama-3-8b\ntraining: [1, 2]\n"}) {
    CAPTURE(wrong);
    CHECK(fault_of(wrong + rest, "scenario") != "");
  }
  CHECK(fault_of("model: llama-3-8b\n" + rest, "scenario") == "");
  CHECK(fault_of("runs: [{id: a, measured: {iteration_s: 2, fits: true}}]\n", "evidence") == "");
  for (const char* wrong :
       {"runs: [{id: a}]\n", "runs: [{measured: {fits: true}}]\n", "defaults: {plan: {tp: 2}}\n",
        "run: []\n", "runs: {id: a}\n", "runs: [{id: a, measured: {iteration: 2}}]\n",
        "runs: [{id: a, measured: {iteration_s: -2}}]\n",
        "runs: [{id: a, measured: {fits: perhaps}}]\n",
        "runs: [{id: a, measured: {}, plan: {tpp: 2}}]\n",
        "runs: [{id: a, measured: {}, kinds: {elsewhere: 1}}]\n",
        "defaults: {trainning: {}}\nruns: []\n"}) {
    CAPTURE(wrong);
    CHECK(fault_of(wrong, "evidence") != "");
  }
  CHECK_THROWS_WITH_AS(planner::schema_text("modle"), doctest::Contains("did you mean 'model'"),
                       costmodel::ConfigError);
}

}  // namespace json_schema_test
