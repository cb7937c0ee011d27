#include "planner/commands/json_schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/json_text.hpp"
#include "planner/accuracy/evidence.hpp"
#include "planner/accuracy/serving_evidence.hpp"
#include "planner/commands/commands.hpp"
#include "planner/commands/listing.hpp"
#include "planner/page/json_rest.hpp"

namespace planner {

using Json = nlohmann::ordered_json;
using namespace costmodel;

namespace {

// A key and its parts: those of a map by name, "[]" those of a list's items.
struct Node {
  std::string name, help, allowed;
  std::vector<Node> parts;

  Node& part(const std::string& of) {
    const auto found = std::ranges::find(parts, of, &Node::name);
    if (found != parts.end()) return *found;
    parts.push_back({.name = of});
    return parts.back();
  }
};

// "cluster.tiers[].name" is under cluster, tiers, [], name.
void add_key(const KeyText& key, Node& root) {
  Node* at = &root;
  std::string name;
  const auto descend = [&] {
    if (!name.empty()) at = &at->part(name);
    name.clear();
  };
  for (const char c : key.name) {
    if (c == '.' || c == '[') descend();
    if (c != '.') name += c;
  }
  descend();
  if (!at->allowed.empty()) return;
  at->help = key.help;
  at->allowed = key.allowed;
}

Node tree_of_keys() {
  Node root;
  for (const auto& row : listing("keys", {}, {}).table.rows)
    add_key({row[0], row[2], row[1]}, root);
  for (const auto& keys : {evidence_keys(), serving_evidence_keys()})
    for (const KeyText& key : keys) add_key(key, root);
  return root;
}

std::vector<std::string> parts_of(std::string_view allowed) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= allowed.size();) {
    const std::size_t end = std::min(allowed.find(", ", at), allowed.size());
    parts.emplace_back(allowed.substr(at, end - at));
    at = end + 2;
  }
  return parts;
}

bool is_word(const std::string& part) {
  return !part.empty() && part.find_first_of(" {[(:") == std::string::npos;
}

// A number as records print it, with or without commas.
std::optional<double> number_in(std::string text) {
  std::erase(text, ',');
  double number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// "1 to 1,024", "0 to 1 s": a number within the range, or one with a unit, which is text.
std::optional<Json> range_of(const std::string& allowed) {
  const std::size_t to = allowed.find(" to ");
  if (to == std::string::npos) return std::nullopt;
  const auto least = number_in(allowed.substr(0, to));
  if (!least) return std::nullopt;
  std::size_t end = allowed.find_first_not_of("0123456789.,e+-", to + 4);
  end = std::min(end, allowed.size());
  std::string last = allowed.substr(to + 4, end - to - 4);
  while (last.ends_with(',')) last.pop_back();
  const auto most = number_in(last);
  Json number{{"type", "number"}, {"minimum", *least}};
  if (most) number["maximum"] = *most;
  Json either = Json::array({number, {{"type", "string"}, {"pattern", "^[0-9.]"}}});
  for (const std::string& part : parts_of(allowed))
    if (is_word(part) && !number_in(part)) either.push_back({{"const", part}});
  if (allowed.find('{') != std::string::npos) either.push_back({{"type", "object"}});
  if (allowed.find("list") != std::string::npos) either.push_back({{"type", "array"}});
  return Json{{"anyOf", either}};
}

// Words as JSON has them.
Json words_of(const std::vector<std::string>& parts) {
  Json words = Json::array();
  for (const std::string& part : parts)
    if (is_word(part)) words.push_back(json_scalar(part));
  return words;
}

// What a value may be, from the words of its record.
Json shape_of(std::string allowed) {
  constexpr std::string_view needed = "; required";
  if (allowed.ends_with(needed)) allowed.resize(allowed.size() - needed.size());
  if (allowed == "true, false") return {{"type", "boolean"}};
  if (allowed == "text") return {{"type", Json::array({"string", "number", "boolean"})}};
  if (allowed == "a list of maps") return {{"type", "array"}};
  if (allowed == "a map") return {{"type", "object"}};
  if (auto range = range_of(allowed)) return *std::move(range);
  const auto parts = parts_of(allowed);
  if (!is_word(parts.front())) return Json::object();
  const Json words{{"enum", words_of(parts)}};
  if (std::ranges::all_of(parts, is_word)) return parts.size() > 1 ? words : Json::object();
  // Words first, then what has a form of its own.
  return {{"anyOf", Json::array({words, {{"type", Json::array({"object", "array"})}}})}};
}

Json schema_of(const Node& node);

// A map of these parts and no others.
Json map_of(const Node& node) {
  Json properties = Json::object(), required = Json::array();
  for (const Node& part : node.parts) {
    properties[part.name] = schema_of(part);
    if (part.allowed.ends_with("; required")) required.push_back(part.name);
  }
  Json map{{"type", "object"}, {"properties", properties}};
  // A tower's map has the keys of its layers too, which stand where a model's do.
  if (node.allowed.find("with the keys of") == std::string::npos)
    map["additionalProperties"] = false;
  if (!required.empty()) map["required"] = required;
  return map;
}

Json schema_of(const Node& node) {
  Json schema;
  const bool of_items = node.parts.size() == 1 && node.parts.front().name == "[]";
  if (node.parts.empty()) {
    schema = shape_of(node.allowed);
  } else if (of_items) {
    schema = {{"type", "array"}, {"items", map_of(node.parts.front())}};
  } else {
    schema = map_of(node);
  }
  // Some maps and lists may also be a word.
  if (!node.parts.empty() && !node.allowed.empty()) {
    const Json words = words_of(parts_of(node.allowed));
    if (!words.empty()) schema = {{"anyOf", Json::array({schema, {{"enum", words}}})}};
  }
  if (!node.help.empty()) schema["description"] = fmt::format("{}. {}", node.help, node.allowed);
  return schema;
}

Json reference(const std::string& kind) { return {{"$ref", "#/$defs/" + kind}}; }

// A name, a file, or a map that may begin from another.
Json named(const std::string& kind) {
  return {{"anyOf", Json::array({{{"type", "string"}}, reference(kind)})}};
}

// A file of a kind: all of its keys may come from its base.
Json file_of(Node node) {
  node.part("base").help = "a name or a file whose keys these override";
  node.part("base").allowed = "text";
  Json map = map_of(node);
  map.erase("required");
  return map;
}

Json texts() { return {{"type", Json::array({"string", "array", "object", "number"})}}; }

Json schema_of_scenario(const Node& root) {
  Node open = root;
  const auto part = [&](const char* name) {
    Json map = map_of(open.part(name));
    map.erase("required");  // a command's flags may give them
    return map;
  };
  Json plan{{"anyOf", Json::array({part("plan"), {{"const", "auto"}}, {{"type", "null"}}})}};
  Json properties{
      {"workload", {{"anyOf", Json::array({{{"type", "string"}}, {{"type", "object"}}})}}},
      {"model", named("model")},
      {"cluster", named("cluster")},
      {"training", part("training")},
      {"serving", part("serving")},
      {"plan", plan},
      {"search", {{"anyOf", Json::array({part("search"), {{"type", "null"}}})}}}};
  for (const char* note : {"name", "title", "notes", "source", "command", "assumed"})
    properties[note] = texts();
  return {{"type", "object"},
          {"properties", properties},
          {"required", Json::array({"model"})},
          {"additionalProperties", false}};
}

// Published runs, a scenario each. Of a run's keys its file's `defaults` may have any.
Json schema_of_evidence(const Node& evidence, const Json& scenario) {
  Json file = map_of(evidence);
  Json& run = file["properties"]["runs"]["items"];
  for (auto& [name, schema] : run["properties"].items()) {
    if (scenario["properties"].contains(name) && name != "notes")
      schema = {{"$ref", "#/$defs/scenario/properties/" + name}};
  }
  Json& defaults = file["properties"]["defaults"];
  const Json description = defaults["description"];
  defaults = run;
  defaults.erase("required");
  defaults["description"] = description;
  return file;
}

// The answers whose keys the schema of answers has: what the writers of JSON write, so that no key
// is written down twice.
constexpr std::array answers{
    "evaluate tiny-gpt-cpu",
    "plan tiny-gpt-cpu --reproducible",
    "simulate tiny-gpt-cpu",
    "explain tiny-gpt-cpu",
    "sweep tiny-gpt-cpu --over tp=1,2",
    "compare tiny-gpt-cpu --with plan.micro_batch=2",
    "groups --tp 2 --pp 2",
    "collective all-reduce --bytes 1GiB --ranks 8 --cluster dgx-h100",
    "evaluate serve-small-llama-cpu",
    "plan serve-small-llama-cpu --reproducible",
};

Json answer_of(std::string_view command, const std::vector<std::string>& config_path) {
  std::vector<std::string> words{"shardplan"};
  for (std::size_t at = 0; at < command.size();) {
    const std::size_t end = std::min(command.find(' ', at), command.size());
    words.emplace_back(command.substr(at, end - at));
    at = end + 1;
  }
  words.insert(words.end(), {"--format", "json", "--quiet"});
  for (const auto& folder : config_path) words.insert(words.end(), {"--config-path", folder});
  std::vector<const char*> arguments;
  for (const auto& word : words) arguments.push_back(word.c_str());
  return own_json(
      run_command(
          parse_command_line(shardplan(), static_cast<int>(arguments.size()), arguments.data()), {})
          .text);
}

std::string type_of(const Json& value) {
  if (value.is_number()) return "number";
  return value.type_name();  // as JSON Schema has them
}

// Adds to `schema` what `value` is: the keys of maps, the items of lists, and of a figure the title
// and unit by which pages show it. Any value may be null, for what is not known. Words of a plan
// may be maps as well, and what stands in `rows` is each command's own: these have no type.
void learn(Json& schema, const Json& value, std::string_view key, bool typed = true) {
  if (schema.is_null()) schema = {{"title", title_of(key)}};
  if (value.is_null()) return;
  if (value.is_number() && !unit_name(key).empty()) schema["description"] = unit_name(key);
  if (typed) {
    Json& types = schema["type"];
    if (types.is_null()) types = Json::array({"null"});
    if (std::ranges::find(types, Json(type_of(value))) == types.end())
      types.push_back(type_of(value));
  }
  if (value.is_object()) {
    for (const auto& [name, item] : value.items()) {
      const bool word = key == "plan" && item.is_string();
      learn(schema["properties"][name], item, name, !word && key != "rows");
    }
  } else if (value.is_array()) {
    for (const Json& item : value) learn(schema["items"], item, key);
  }
}

// What commands print: an object that begins with what it is of, or rows that do.
Json schema_of_answer(const std::vector<std::string>& config_path) {
  Json object, rows;
  for (const char* const command : answers) {
    const Json answer = answer_of(command, config_path);
    if (answer.is_object()) learn(object, answer, "answer");
    if (answer.is_array()) learn(rows, answer, "rows");
  }
  object["type"] = "object";
  for (Json* const one : {&object, &rows["items"]}) {
    (*one)["properties"]["format_version"] = {{"type", "integer"}, {"const", format_version}};
    (*one)["properties"]["program"]["required"] = Json::array({"name", "version"});
    (*one)["required"] = Json::array({"format_version", "program"});
  }
  rows["type"] = "array";
  return {{"anyOf", Json::array({object, rows})}};
}

Json definitions() {
  const Node root = tree_of_keys();
  Node keys = root;
  // A device and a stack of a cluster and a training are named, or maps.
  Json all = Json::object();
  for (const char* kind : {"model", "cluster", "device", "stack", "engine"})
    all[kind] = file_of(keys.part(kind));
  // What an engine has for some devices and models is read outside of its records.
  for (const char* key : {"latent_attention_limits", "small_device_limits", "devices"})
    all["engine"]["properties"][key] = Json::object();
  all["cluster"]["properties"]["device"] = named("device");
  all["scenario"] = schema_of_scenario(root);
  all["scenario"]["properties"]["training"]["properties"]["stack"] = named("stack");
  all["scenario"]["properties"]["serving"]["properties"]["stack"] = named("engine");
  all["evidence"] = schema_of_evidence(keys.part("evidence"), all["scenario"]);
  return all;
}

}  // namespace

std::vector<std::string> schema_kinds() {
  std::vector<std::string> kinds;
  const Json all = definitions();
  for (const auto& [kind, schema] : all.items()) kinds.push_back(kind);
  kinds.emplace_back("answer");
  return kinds;
}

std::string schema_text(const std::string& kind, const std::vector<std::string>& config_path) {
  Json all = definitions();
  if (kind == "answer") all = {{kind, schema_of_answer(config_path)}};
  if (!all.contains(kind)) {
    throw ConfigError({}, fmt::format("shardplan: there is no schema of {}", quote(kind)),
                      known_names(kind, schema_kinds()));
  }
  return json_text({{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                    {"title", "Shardplan: " + kind},
                    {"$ref", "#/$defs/" + kind},
                    {"$defs", all}});
}

}  // namespace planner
