// Trees of values: merging and assignment.
#include "costmodel/config/value.hpp"
#include "costmodel/config/override.hpp"

#include <doctest/doctest.h>

#include "costmodel/config/yaml.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace value_test {

using namespace costmodel;

namespace {

const Mark command_line{"--set", 0, 0};

Value tree(const std::string& yaml) { return parse_yaml(yaml, "t.yaml"); }

std::string assigned(const std::string& yaml, const std::string& assignment) {
  Value root = tree(yaml);
  assign_path(root, assignment, command_line);
  return to_yaml(root);
}

std::string fault(const std::string& yaml, const std::string& assignment) {
  return fixtures::config_error([&] { assigned(yaml, assignment); });
}

}  // namespace

TEST_CASE("assigning a path") {
  CHECK(assigned("{a: 1}", "a=2") == "a: 2\n");
  CHECK(assigned("{a: 1}", "b=2") == "a: 1\nb: 2\n");
  CHECK(assigned("{plan: {tp: 1, pp: 2}}", "plan.tp=8") == "plan:\n  tp: 8\n  pp: 2\n");
  CHECK(assigned("{a: 1}", "plan.recompute.layers=3") ==
        "a: 1\nplan:\n  recompute:\n    layers: 3\n");
  CHECK(assigned("{plan: }", "plan.tp=8") == "plan:\n  tp: 8\n");
  CHECK(assigned("{a: {b: 1}}", "a=7") == "a: 7\n");
  CHECK(assigned("{a: 1}", "a=[1, 2]") == "a: [1, 2]\n");
  CHECK(assigned("{a: 1}", "a={x: 1}") == "a:\n  x: 1\n");
  CHECK(assigned("{a: 1}", "a=b=c") == "a: b=c\n");
}

TEST_CASE("an override below a named model or cluster keeps the name as its base") {
  CHECK(assigned("{model: gpt2}", "model.layers=6") == "model:\n  base: gpt2\n  layers: 6\n");
  CHECK(assigned("{cluster: selene}", "cluster.devices=64") ==
        "cluster:\n  base: selene\n  devices: 64\n");
  CHECK(assigned("{model: {base: gpt2}}", "model.layers=6") ==
        "model:\n  base: gpt2\n  layers: 6\n");
}

TEST_CASE("some keys of a device or a stack keep its name as their base") {
  CHECK(assigned("{cluster: {device: h200}}", "cluster.device.memory.bytes=40GiB") ==
        "cluster:\n  device:\n    base: h200\n    memory:\n      bytes: 40GiB\n");
  CHECK(assigned("{training: {stack: torchtitan}}", "training.stack.loss=flash") ==
        "training:\n  stack:\n    base: torchtitan\n    loss: flash\n");
  CHECK(fault("{training: {precision: bf16}}", "training.precision.x=1") ==
        "--set: 'training.precision' is not a map; only maps and lists have keys below them");
  const auto over = [](const std::string& base, const std::string& map) {
    return to_yaml(merged(tree(base), tree(map)));
  };
  CHECK(over("{device: h200}", "{device: {memory: 1}}") == "device:\n  base: h200\n  memory: 1\n");
  CHECK(over("{device: h200}", "{device: {base: b200, memory: 1}}") ==
        "device:\n  base: b200\n  memory: 1\n");
  CHECK(over("{device: h200}", "{device: {title: ours, memory: 1}}") ==
        "device:\n  title: ours\n  memory: 1\n");
  CHECK(over("{recompute: full}", "{recompute: {layers: 1}}") == "recompute:\n  layers: 1\n");
}

TEST_CASE("what is no assignment is refused") {
  CHECK(fault("{a: 1}", "a").starts_with("--set: 'a' is not an assignment"));
  CHECK(fault("{a: 1}", "=3").starts_with("--set: '=3' is not an assignment"));
  CHECK(fixtures::contains(fault("{a: 1}", "x..b=3"), "empty key"));
  CHECK(fixtures::contains(fault("{a: 1}", ".a=3"), "empty key"));
  CHECK(fixtures::contains(fault("{a: {}}", "a.=3"), "empty key"));
  std::string deep = "a";
  for (int i = 0; i < 50'000; ++i) deep += ".a";
  CHECK(fixtures::contains(fault("{a: 1}", deep + "=3"), "has more than 32 keys"));
  CHECK(fixtures::contains(fault("{a: 1}", "a.b=3"), "'a' is not a map"));
  CHECK(fixtures::contains(fault("{a: {b: [1]}}", "a.b.c=3"), "'a.b' has no place 'c'"));
  CHECK(fixtures::contains(fault("{a: [1, 2]}", "a.2=3"),
                           "'a' has no place '2'; it is a list of 2; places count from 0"));
  CHECK(fixtures::contains(fault("{a: [{b: 1}]}", "a.-1.b=3"), "'a' has no place '-1'"));
  CHECK(fixtures::contains(fault("{a: 1}", "a=[1"), "--set:1:"));
  CHECK(fixtures::contains(fault("{a: 1}", "a="), "--set"));
}

TEST_CASE("a place in a list is a key, in a file and in what it is based on") {
  Value root = parse_yaml("{a: [1, {b: 2, c: 3}], d: [[4], 5]}", "t.yaml");
  assign_path(root, "a.0=7", {});
  assign_path(root, "a.1.b=8", {});
  assign_path(root, "d.0.0=9", {});
  CHECK(root.find("a")->items[0].text == "7");
  CHECK(root.find("a")->items[1].find("b")->text == "8");
  CHECK(root.find("a")->items[1].find("c")->text == "3");
  CHECK(root.find("d")->items[0].items[0].text == "9");
  CHECK(root.find("d")->items[1].text == "5");
  Value over;
  assign_path(over, "a.1.c=10", {});
  const Value both = merged(root, over);
  CHECK(both.find("a")->items.size() == 2);
  CHECK(both.find("a")->items[1].find("b")->text == "8");
  CHECK(both.find("a")->items[1].find("c")->text == "10");
  Value beyond;
  assign_path(beyond, "a.2.c=10", {});
  CHECK_THROWS_AS(merged(root, beyond), costmodel::ConfigError);
  // Words are no places: they replace a list, as before.
  CHECK(merged(root, parse_yaml("{a: {x: 1}}", "t.yaml")).find("a")->is_map());
}

TEST_CASE("merging lays one map upon another") {
  const Value base = tree("{a: 1, m: {x: 1, y: {z: 2}}, l: [1, 2]}");
  const Value over = tree("{b: 3, m: {y: {w: 4}, x: 5}, l: [9]}");
  CHECK(to_yaml(merged(base, over)) ==
        "a: 1\nm:\n  x: 5\n  y:\n    z: 2\n    w: 4\nl: [9]\nb: 3\n");
  CHECK(to_yaml(merged(base, tree("7"))) == "7\n");
  CHECK(to_yaml(merged(base, Value{})) == to_yaml(base));
  CHECK(merged(base, over).find("b")->mark.file == "t.yaml");
  // The whole stands where the override does, inherited values where they were written.
  const Value mine = parse_yaml("\n{x: 1}", "over.yaml");
  CHECK(to_string(merged(base, mine).mark) == "over.yaml:2:1");
  CHECK(to_string(merged(base, mine).find("a")->mark) == "t.yaml:1:5");
}

TEST_CASE("finding and setting keys") {
  Value v;
  v.set("a", scalar_value("1"));
  CHECK(v.is_map());
  CHECK(v.find("a")->text == "1");
  CHECK(v.find("b") == nullptr);
  v.set("a", scalar_value("2"));
  CHECK(v.entries.size() == 1);
  CHECK(v.find("a")->text == "2");
}

}  // namespace value_test
