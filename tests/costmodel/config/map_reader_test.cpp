// Reading one map: types, ranges, unknown keys.
#include "costmodel/config/map_reader.hpp"

#include <doctest/doctest.h>

#include "costmodel/config/override.hpp"
#include "costmodel/config/yaml.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace map_reader_test {

namespace config_reader_test {

using namespace costmodel;

namespace {

template <class Read>
std::string fault(const std::string& yaml, Read read) {
  const Value map = parse_yaml(yaml, "f.yaml");
  return fixtures::config_error([&] {
    MapReader reader(map, "plan");
    read(reader);
    reader.finish();
  });
}

}  // namespace

TEST_CASE("values that do not go together are blamed on what stands above a base") {
  Value map = merged(parse_yaml("{a: 1, b: 2}", "base.yaml"), parse_yaml("{b: 3}", "mine.yaml"));
  CHECK(to_string(MapReader(map, "model").mark_of_any({"a", "b"})) == "mine.yaml:1:5");
  CHECK(to_string(MapReader(map, "model").mark_of_any({"a", "c"})) == "base.yaml:1:5");
  assign_path(map, "a=4", mark_of_argument("--set", "a=4"));
  CHECK(to_string(MapReader(map, "model").mark_of_any({"b", "a"})).starts_with("--set a=4"));
}

TEST_CASE("whole numbers") {
  const auto read = [](MapReader& r) { r.integer("n", {1, 1000}); };
  CHECK(fault("n: 8", read) == "");
  CHECK(fault("n: +8", read) == "");
  CHECK(fault("n: ", read) == "");  // nothing is as good as absent
  CHECK(fault("n: 0", read) ==
        "f.yaml:1:4: n: 0 is out of range; allowed: whole numbers 1 to 1,000");
  for (const std::string text :
       {"8.0", "8x", "'8'", "1e3", "99999999999999999999", "0x8", "+-8", "++8"}) {
    CAPTURE(text);
    CHECK(fixtures::contains(fault("n: " + text, read), "is not a whole number"));
  }
  CHECK(fixtures::contains(fault("n: [8]", read), "n is a list; write a whole number"));
  CHECK(fixtures::contains(fault("n: {a: 8}", read), "n is a map"));
}

TEST_CASE("numbers with units") {
  const auto read = [](MapReader& r) { r.number("x", Dimension::bandwidth, 1, 1e12); };
  CHECK(fault("x: 25 GB/s", read) == "");
  CHECK(fixtures::contains(fault("x: 25 GB", read),
                           "is a size, not a bandwidth; write it like 25 GB/s"));
  CHECK(fixtures::contains(fault("x: 25 TB/s", read), "out of range; allowed: 1 to 1e+12 B/s"));
  CHECK(fixtures::contains(fault("x: fast", read), "'fast' is not a number"));
}

TEST_CASE("flags, words and lists of names") {
  CHECK(fault("b: true", [](MapReader& r) { CHECK(r.boolean("b") == true); }) == "");
  CHECK(fixtures::contains(fault("b: yes", [](MapReader& r) { r.boolean("b"); }),
                           "neither true nor false"));
  static constexpr std::string_view names[] = {"gpipe", "1f1b"};
  CHECK(fault("s: 1f1b", [](MapReader& r) { CHECK(r.one_of("s", names) == 1); }) == "");
  CHECK(fixtures::contains(fault("s: 1f1", [](MapReader& r) { r.one_of("s", names); }),
                           "did you mean '1f1b'"));
  CHECK(fault("s: auto", [](MapReader& r) { CHECK(r.is_auto("s")); }) == "");
}

TEST_CASE("keys: missing, unknown, misspelt, no map at all") {
  CHECK(fault("a: 1", [](MapReader& r) { r.required("tp"), r.optional("a"); }) ==
        "f.yaml:1:1: plan lacks the key 'tp'; add tp: ...");
  const std::string unknown = fault(
      "tp: 1\nmicro_bach: 2\n", [](MapReader& r) { r.optional("tp"), r.optional("micro_batch"); });
  CHECK(
      unknown.starts_with("f.yaml:2:1: plan has no key 'micro_bach'; did you mean 'micro_batch'?"));
  CHECK(fixtures::contains(fault("[1]", [](MapReader&) {}), "plan is a list; write a map"));
}

TEST_CASE("a misspelt key is told as such also where the key is required") {
  CHECK(fault("a: 1\nglobal_bach: 2\n", [](MapReader& r) { r.required("global_batch"); }) ==
        "f.yaml:2:1: plan has no key 'global_bach'; did you mean 'global_batch'?");
  // Keys of other meanings, far or asked for already.
  CHECK(fixtures::contains(
      fault("backward_efficiency: 1\n", [](MapReader& r) { r.required("forward_efficiency"); }),
      "lacks the key 'forward_efficiency'"));
  CHECK(fixtures::contains(
      fault("device: 1\n", [](MapReader& r) { r.required("device"), r.required("devices"); }),
      "lacks the key 'devices'"));
}

TEST_CASE("a key of another word is answered by its meaning") {
  CHECK(fault("batch: 64\n", [](MapReader& r) { r.required("global_batch"); }) ==
        "f.yaml:1:1: plan has no key 'batch'; did you mean 'global_batch'?");
  CHECK(fault("tensor_parallel_size: 8\n", [](MapReader& r) { r.optional("tp"); }) ==
        "f.yaml:1:1: plan has no key 'tensor_parallel_size'; did you mean 'tp'?");
  CHECK(fault("seq_len: 8\n", [](MapReader& r) { r.optional("tp"); }) ==
        "f.yaml:1:1: plan has no key 'seq_len'; did you mean 'training.sequence'?");
  CHECK(fault("<<: {tp: 8}\n", [](MapReader& r) {
          r.optional("tp");
        }).find("YAML's merges are not read") != std::string::npos);
}

TEST_CASE("a number in quotes is a text, and the message has the reason") {
  const std::string why = fault("tp: \"2\"\n", [](MapReader& r) { r.integer("tp", {1, 8}); });
  CHECK(why.starts_with("f.yaml:1:5: tp: '2' is not a "));
  CHECK(why.ends_with("leave out its quotes, which make it a text"));
}

TEST_CASE("where all keys are known, one that is not is reported before one that lacks") {
  const auto fault_of = [](const std::string& yaml) {
    const Value map = parse_yaml(yaml, "f.yaml");
    return fixtures::config_error([&] {
      MapReader reader(map, "plan", {"tp", "pp", "micro_batch"}, "tp: 8");
      reader.required("tp");
    });
  };
  CHECK(fault_of("colour: 1\n") ==
        "f.yaml:1:1: plan has no key 'colour'; known: tp, pp, micro_batch");
  // A key of other plans is not suggested as what stands there already.
  CHECK(fault_of("recompute: full\n") ==
        "f.yaml:1:1: plan has no key 'recompute'; known: tp, pp, micro_batch");
  CHECK(fixtures::contains(fault_of("pp: 1\n"), "lacks the key 'tp'"));
  CHECK(fault_of("fast") ==
        "f.yaml:1:1: plan is a plain value; write a map: {tp: 8}; known: tp, pp, micro_batch");
}

TEST_CASE("of a file that is no scenario nothing is shown") {
  const Value other = parse_yaml("root:*:20228:0:99999:7:::\n", "shadow");
  const std::string message = fixtures::config_error([&] {
    MapReader reader(other, "scenario", {"model", "cluster"});
    reader.required("model");
  });
  CHECK(fixtures::contains(message, "it has none of its keys"));
  CHECK_FALSE(fixtures::contains(message, "20228"));
}

TEST_CASE("lengths in tokens have k and M of 1,024") {
  const auto length = [](const std::string& text) {
    std::int64_t tokens = 0;
    const std::string wrong = fault("n: " + text, [&](MapReader& r) {
      tokens = r.tokens("n", {1, 100'000'000}).value_or(0);
    });
    return wrong.empty() ? tokens : -1;
  };
  CHECK(length("128k") == 131'072);
  CHECK(length("128K") == 131'072);
  CHECK(length("1M") == 1'048'576);
  CHECK(length("1.5k") == 1536);
  CHECK(length("4096") == 4096);
  for (const char* text : {"128kk", "k", "128 k", "0.3k", "'128k'", "1G", "1000M", "-1k", "xk"}) {
    CAPTURE(text);
    CHECK(length(text) == -1);
  }
}

}  // namespace config_reader_test

}  // namespace map_reader_test
