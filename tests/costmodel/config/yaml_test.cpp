// Files in and out, and everything that can be wrong with one.
#include "costmodel/config/yaml.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "tests/costmodel/support/fixtures.hpp"

namespace yaml_test {

using namespace costmodel;
using fixtures::config_error;

namespace {

std::string fault(const std::string& text) {
  return config_error([&] { parse_yaml(text, "f.yaml"); });
}

// The same tree, but for marks and quotes.
bool same(const Value& a, const Value& b) {
  if (a.kind != b.kind || a.text != b.text || a.items.size() != b.items.size() ||
      a.entries.size() != b.entries.size())
    return false;
  for (std::size_t i = 0; i < a.items.size(); ++i)
    if (!same(a.items[i], b.items[i])) return false;
  for (std::size_t i = 0; i < a.entries.size(); ++i)
    if (a.entries[i].key != b.entries[i].key || !same(a.entries[i].value, b.entries[i].value))
      return false;
  return true;
}

Value random_tree(fixtures::Random& random, int depth) {
  static const std::vector<std::string> words{
      "a",        "12",   "-3.5",       "true", "null",    "~",    "",       " lead",   "trail ",
      "a: b",     "#c",   "x#y",        "[1]",  "{a}",     "it's", "\"q\"",  "a\nb",    "tab\tbed",
      "312 GB/s", "&a",   "*a",         "!t",   "%d",      "@x",   "`b`",    "|",       ">",
      "-",        "- a",  "?",          "? k",  "été",     "a,b",  "=",      "yes",     "0x10",
      "1e400",    "a\\b", "2026-01-02", "<<",   "\x1b[1m", "\x7f", "\u009b", "a\u202E", "\u2028"};
  Value value;
  const int kind = depth >= 4 ? 1 : random.integer(0, 3);
  if (kind == 1)
    return scalar_value(
        words[static_cast<std::size_t>(random.integer(0, static_cast<int>(words.size()) - 1))]);
  if (kind == 2) {
    value.kind = Value::Kind::sequence;
    for (int i = random.integer(0, 4); i > 0; --i)
      value.items.push_back(random_tree(random, depth + 1));
  }
  if (kind == 3) {
    value.kind = Value::Kind::map;
    for (int i = random.integer(0, 4); i > 0; --i) {
      value.set(
          words[static_cast<std::size_t>(random.integer(0, static_cast<int>(words.size()) - 1))],
          random_tree(random, depth + 1));
    }
  }
  return value;
}

// A directory of its own that goes with the test.
struct Scratch {
  std::filesystem::path path = std::filesystem::temp_directory_path() /
                               ("shardplan-yaml-" + std::to_string(std::random_device{}()));
  Scratch() { std::filesystem::create_directories(path); }
  ~Scratch() { std::filesystem::remove_all(path); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name, std::ios::binary) << text;
    return (path / name).string();
  }
};

}  // namespace

TEST_CASE("values remember where they were written") {
  const Value root = parse_yaml("a: 1\nmap:\n  key: [x, 'y']\n", "f.yaml");
  CHECK(to_string(root.find("a")->mark) == "f.yaml:1:4");
  const Value* list = root.find("map")->find("key");
  REQUIRE(list->items.size() == 2);
  CHECK(to_string(list->items[1].mark) == "f.yaml:3:12");
  CHECK_FALSE(list->items[0].quoted);
  CHECK(list->items[1].quoted);
  CHECK(to_string(root.find("map")->entries[0].key_mark) == "f.yaml:3:3");
}

TEST_CASE("JSON is YAML") {
  const Value root = parse_yaml("{\"a\": {\"b\": [1, 2.5, null, true]}}", "f.json");
  REQUIRE(root.find("a")->find("b")->items.size() == 4);
  CHECK(root.find("a")->find("b")->items[1].text == "2.5");
  CHECK(root.find("a")->find("b")->items[2].kind == Value::Kind::null);
}

TEST_CASE("keys that are written twice are kept where a reader wants them") {
  const Value root = parse_yaml("a: 1\nb: 2\na: 3\n", "f.yaml", costmodel::RepeatedKeys::kept);
  REQUIRE(root.entries.size() == 3);
  CHECK(root.entries.back().key == "a");
  CHECK(root.entries.back().value.text == "3");
}

TEST_CASE("faults of the text are told with line and column") {
  CHECK(fault("a: 1\nb: 2\na: 3\n") ==
        "f.yaml:3:1: key 'a' is written twice in one map; keep one of them");
  CHECK(fault("m: {x: 1, x: 2}\n").starts_with("f.yaml:1:11: key 'x' is written twice"));
  CHECK(fault("a: {b: 1,\n").starts_with("f.yaml:"));
  CHECK(fixtures::contains(fault("a: {b: 1,\n"), "not readable as YAML"));
  CHECK(fault("a: 1\n b: 2\n").starts_with("f.yaml:2:"));
  CHECK(fault("a: \"no end\n").starts_with("f.yaml:1:"));
  CHECK(fixtures::contains(fault("a: \"no end\nb: 1\n"), "illegal EOF"));
  CHECK(fixtures::contains(fault("a: 'no end\n"), "illegal EOF"));
  CHECK(fault("a: *nowhere\n").starts_with("f.yaml:1:"));
  CHECK(fault("? [a, b]\n: 1\n").starts_with("f.yaml:1:3: a key must be a plain word"));
  CHECK(fixtures::contains(fault(""), "is empty"));
  CHECK(fixtures::contains(fault("\n\n"), "is empty"));
  CHECK(fixtures::contains(fault("a: 1\n---\nb: 2\n"), "more than one YAML document"));
  CHECK(fault("a: &x 1\nb: *x\n") == "");  // anchors are YAML
  CHECK(fault("a: 1\nb:\n\tc: 2\n") == "f.yaml:3:1: a tab; indent with blanks");
  CHECK(fault("a: 1\nb:\n  \tc: 2\n").starts_with("f.yaml:3:3: a tab"));
}

TEST_CASE("nesting and size are bounded") {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']');
  };
  CHECK(fault(nested(65)) == "");
  CHECK(fixtures::contains(fault(nested(66)), "deeper than 64"));
  CHECK(fixtures::contains(fault(nested(100'000)), "f.yaml"));
  // Aliases that multiply: ten to the seventh values from a few lines.
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 8; ++i) {
    const std::string below = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + below;
    for (int k = 1; k < 10; ++k) text += ", " + below;
    text += "]\n";
  }
  CHECK(fixtures::contains(fault(text), "more than half a million values"));
}

TEST_CASE("what a document leaves over is refused where it stands, and read once") {
  const std::string told = ": the file holds more than one YAML document; keep one: it ends at ";
  for (const char* rest :
       {",", ", ,", "]", "}", " {b: 2}", ",\n", ",\n\n# end\n", "\n---", "\n...\n[]"}) {
    CAPTURE(rest);
    CHECK(fixtures::contains(fault(std::string("{\"a\": 1}") + rest), "f.yaml:"));
  }
  CHECK(fault("{\"a\": 1},").starts_with("f.yaml:1:9" + told));
  CHECK(fault("[1],").starts_with("f.yaml:1:4" + told));
  CHECK(fault("{a: 1}]").starts_with("f.yaml:1:7: not readable as YAML"));
  CHECK(fault("a: 1\n---\nb: 2\n").starts_with("f.yaml:2:1" + told));
  CHECK(fault(",").starts_with("f.yaml:1:1" + told));
  CHECK(fault("---\na: 1\n...\n# nothing more\n") == "");
}

TEST_CASE("what a parser could be made to hold is bounded before it is held") {
  const auto often = [](const std::string& text, std::size_t times) {
    std::string all;
    for (std::size_t i = 0; i < times; ++i) all += text;
    return all;
  };
  constexpr std::size_t many = (std::size_t{1} << 20) + 1;
  const std::string separators = "f.yaml: holds more than a million commas, colons and brackets; ";
  for (const char* one : {"[", "{", ",", ":", "a:", "[{"})
    CHECK(fault(often(one, many)).starts_with(separators));
  CHECK(fixtures::contains(fault("- a\n" + often("-\n", many / 2)),
                           "more than half a million values"));
  CHECK(fault(often("- ", 200)).starts_with("f.yaml:1:131: values nest deeper than 64 levels"));
  const std::string most(std::size_t{64} << 10, 'x');
  CHECK(parse_yaml("a: " + most, "f.yaml").find("a")->text == most);
  CHECK(fault("a: " + most + "x") == "f.yaml:1:4: a value has 65537 bytes; allowed: 65536 at most");
  CHECK(fault("? \"" + most + "x\"\n: 1") ==
        "f.yaml:1:3: a value has 65537 bytes; allowed: 65536 at most");
}

TEST_CASE("an alias repeats the tree that it names, and keeps its place") {
  const Value root = parse_yaml("a: &x {k: [1, &y 2]}\nb: *x\nc: [*y, *y]\n", "f.yaml");
  CHECK(same(*root.find("a"), *root.find("b")));
  CHECK(to_string(root.find("b")->find("k")->items[1].mark) == "f.yaml:1:15");
  CHECK(root.find("c")->items[1].text == "2");
  CHECK(fixtures::contains(fault("a: &x [1]\n*x : 2\n"), "a key must be a plain word"));
  CHECK(fixtures::contains(fault("~: 2\n"), "a key must be a plain word"));
  // As deep by aliases as if it were written out.
  std::string text = "a0: &a0 []\n";
  for (int i = 1; i < 70; ++i)
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) +
            "]\n";
  CHECK(fixtures::contains(fault(text), "values nest deeper than 64 levels"));
}

TEST_CASE("an alias to itself is a fault, not a loop") {
  CHECK(fault("a: &a [*a]\n").starts_with("f.yaml:1:8: an alias stands inside of what it names"));
}

TEST_CASE("files that cannot be read") {
  const Scratch scratch;
  const auto load_fault = [](const std::string& path) {
    return config_error([&] { load_yaml(path); });
  };
  const std::string missing = (scratch.path / "none.yaml").string();
  CHECK(load_fault(missing) == missing + ": no such file; check the path");
  CHECK(fixtures::contains(load_fault(scratch.path.string()), "is a directory"));
  CHECK(fixtures::contains(load_fault(scratch.write("empty.yaml", "")), "is empty"));
  const std::string cut =
      scratch.write("cut.yaml", "model: gpt2\ntraining: {global_batch: 16, seq");
  CHECK(load_fault(cut).starts_with(cut + ":2:"));
  const std::string noise = scratch.write("noise.yaml", std::string("\0\1\2\xff\xfe", 5));
  Value bytes;  // refused, or at least no map that a reader would take
  const std::string refused = config_error([&] { bytes = load_yaml(noise); });
  CHECK((!refused.empty() || !bytes.is_map()));
  CHECK(load_yaml(scratch.write("good.yaml", "a: 1\n")).find("a")->text == "1");
  const std::string large = scratch.write("large.yaml", "a: 1\n");
  std::filesystem::resize_file(large, (4u << 20) + 1);
  CHECK(fixtures::contains(load_fault(large), "larger than 4 MiB"));
  CHECK(fixtures::contains(load_fault("/dev/zero"), "is a device"));
}

TEST_CASE("what is written reads back to the same tree") {
  fixtures::Random random(11);
  for (int round = 0; round < 500; ++round) {
    const Value value = random_tree(random, 0);
    const std::string text = to_yaml(value);
    CAPTURE(text);
    Value again;
    REQUIRE_NOTHROW(again = parse_yaml(text, "again.yaml"));
    CHECK(same(value, again));
    CHECK(to_yaml(again) == text);
  }
}

TEST_CASE("a quoted number stays text") {
  const Value again = parse_yaml(to_yaml(parse_yaml("a: '12'\nb: 12\n", "f.yaml")), "again.yaml");
  CHECK(again.find("a")->quoted);
  CHECK_FALSE(again.find("b")->quoted);
}

TEST_CASE("lines may end as on Windows: the same tree, and faults at the same lines") {
  const std::string plain =
      "# a comment\na: 12\nb:\n  - one\n  - 'two'\nc: \"three\n  lines\"\nd: |\n  kept\n  "
      "apart\n";
  std::string windows;
  for (const char c : plain) windows += c == '\n' ? "\r\n" : std::string(1, c);
  const Value value = parse_yaml(windows, "f.yaml");
  CHECK(same(value, parse_yaml(plain, "f.yaml")));
  CHECK(value.find("a")->text == "12");
  CHECK(value.find("d")->mark.line == parse_yaml(plain, "f.yaml").find("d")->mark.line);
  CHECK(fixtures::contains(fault("a: 1\r\nb: 2\r\na: 3\r\n"),
                           "f.yaml:3:1: key 'a' is written twice"));
}

}  // namespace yaml_test
