// Names, paths, bases; and every shipped file loads.
#include "costmodel/config/search_path.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "costmodel/config/yaml.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace search_path_test {

using namespace costmodel;
using fixtures::config_error;
using fixtures::contains;

namespace {

namespace fs = std::filesystem;

// A configuration directory of its own that goes with the test.
struct Scratch {
  fs::path path =
      fs::temp_directory_path() / ("shardplan-configs-" + std::to_string(std::random_device{}()));
  ~Scratch() { fs::remove_all(path); }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((path / name).parent_path());
    std::ofstream(path / name) << text;
  }
  ConfigPath search() const { return {.directories = {path.string()}}; }
  ConfigPath allowed() const { return {.allowed = {path.string()}}; }
};

Value named(const std::string& text, const std::string& file = "") {
  return scalar_value(text, {file, 1, 8});
}

}  // namespace

TEST_CASE("a name, a map, a base") {
  const Scratch scratch;
  scratch.write("models/small.yaml", "layers: 2\nhidden: 64\nmap: {x: 1, y: 2}\n");
  scratch.write("models/mid.yaml", "base: small\nhidden: 128\nmap: {x: 7}\n");
  const ResolvedConfig plain = resolve_config(scratch.search(), "models", named("small"));
  CHECK(plain.name == "small");
  CHECK(plain.value.find("layers")->text == "2");
  const ResolvedConfig mid = resolve_config(scratch.search(), "models", named("mid"));
  CHECK(mid.name == "mid");
  CHECK(to_yaml(mid.value) == "layers: 2\nhidden: 128\nmap:\n  x: 7\n  y: 2\n");
  const Value over = parse_yaml("{base: mid, layers: 9}", "s.yaml");
  const ResolvedConfig top = resolve_config(scratch.search(), "models", over);
  CHECK(top.value.find("layers")->text == "9");
  CHECK(top.value.find("hidden")->text == "128");
  CHECK(top.value.find("base") == nullptr);
  CHECK(resolve_config(scratch.search(), "models", parse_yaml("{layers: 1}", "s.yaml")).name == "");
}

TEST_CASE("the first directory of the search path wins, and all are listed once") {
  const Scratch a, b;
  a.write("models/one.yaml", "v: 1\n");
  b.write("models/one.yaml", "v: 2\n");
  b.write("models/two.yaml", "v: 2\n");
  b.write("models/notes.txt", "no model\n");
  const ConfigPath both{.directories = {a.path.string(), b.path.string()}};
  CHECK(config_names(both, "models") == std::vector<std::string>{"one", "two"});
  CHECK(resolve_config(both, "models", named("one")).value.find("v")->text == "1");
  CHECK(config_names(both, "devices").empty());
}

TEST_CASE("a path is looked up beside the file that names it") {
  const Scratch scratch;
  scratch.write("here/mine.yaml", "v: 5\n");
  scratch.write("here/scenario.yaml", "model: mine.yaml\n");
  const std::string from = (scratch.path / "here/scenario.yaml").string();
  CHECK(resolve_config({}, "models", named("mine.yaml", from)).value.find("v")->text == "5");
  CHECK(resolve_config({}, "models", named((scratch.path / "here/mine.yaml").string())).name ==
        "mine");
  CHECK(contains(config_error([&] { resolve_config({}, "models", named("./none.yaml", from)); }),
                 "scenario.yaml:1:8: no file './none.yaml'"));
}

TEST_CASE("a model may be called as a hub has it, a file that is missing may not") {
  const ConfigPath& path = fixtures::configs();
  const auto file = [&](const std::string& name) { return find_config(path, "models", name, {}); };
  CHECK(file("Qwen/Qwen2.5-7B-Instruct").ends_with("/qwen2-7b.yaml"));
  CHECK(file("Llama3-8B").ends_with("/llama-3-8b.yaml"));
  for (const char* none :
       {"./llama-3-8b", "a/b/llama-3-8b", "x/llama-3-8b.yaml", "llama-3-8", "70b"})
    CHECK_THROWS_AS(file(none), ConfigError);
  CHECK_THROWS_AS(find_config(path, "devices", "Qwen/Qwen2.5-7B", {}), ConfigError);
}

TEST_CASE("faults: unknown names, circles, wrong kinds") {
  const Scratch scratch;
  scratch.write("models/a.yaml", "base: b\n");
  scratch.write("models/b.yaml", "base: c\n");
  scratch.write("models/c.yaml", "base: a\n");
  scratch.write("models/self.yaml", "base: self\n");
  scratch.write("models/list.yaml", "[1]\n");
  const auto fault = [&](const Value& value) {
    return config_error([&] { resolve_config(scratch.search(), "models", value); });
  };
  CHECK(contains(fault(named("selv", "s.yaml")),
                 "s.yaml:1:8: no model 'selv'; did you mean 'self'?"));
  const std::string circle = fault(named("a"));
  CHECK(contains(circle, "goes in a circle"));
  CHECK(circle.find("a.yaml ->") < circle.find("b.yaml ->"));
  CHECK(circle.find("b.yaml ->") < circle.find("c.yaml ->"));
  CHECK(contains(fault(named("self")), "goes in a circle"));
  CHECK(contains(fault(named("list")), "model is neither a name, a file nor a map"));
  CHECK(contains(fault(parse_yaml("{base: [a]}", "s.yaml")), "s.yaml:1:8: base is not a name"));
  CHECK(contains(config_error([] { resolve_config({}, "models", named("gpt2")); }),
                 "no configs were found"));
}

TEST_CASE("a ring is told whatever its files are called, in a short line") {
  const Scratch scratch;
  scratch.write("ring.yaml", "base: ./ring.yaml\n");
  scratch.write("to.yaml", "base: ./link.yaml\n");
  std::filesystem::create_symlink(scratch.path / "to.yaml", scratch.path / "link.yaml");
  for (const char* name : {"/ring.yaml", "/./ring.yaml", "/link.yaml"}) {
    const std::string told = config_error([&] {
      resolve_config(scratch.allowed(), "models", named(scratch.path.string() + name, "s.yaml"));
    });
    CHECK(contains(told, "base: goes in a circle; break the chain "));
    CHECK(told.size() < 400);
  }
}

TEST_CASE("a chain leads through 64 files at most") {
  const Scratch scratch;
  for (int i = 0; i < 70; ++i) {
    scratch.write("models/m" + std::to_string(i) + ".yaml",
                  "base: m" + std::to_string(i + 1) + "\n");
  }
  scratch.write("models/m70.yaml", "v: 1\n");
  const auto from = [&](int i) {
    return resolve_config(scratch.search(), "models", named("m" + std::to_string(i)));
  };
  CHECK(from(7).value.find("v")->text == "1");
  const std::string told = config_error([&] { from(6); });
  CHECK(contains(told, "base: leads through more than 64 files"));
  CHECK(contains(told, "m9.yaml -> ... -> "));
}

TEST_CASE("a file of text is no name, and a message quotes no more than a piece of a name") {
  const Scratch scratch;
  scratch.write("passwd", "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1:secret\n");
  const std::string told = config_error([&] {
    resolve_config(scratch.allowed(), "models", named(scratch.path.string() + "/passwd", "s.yaml"));
  });
  CHECK(contains(told, "passwd:1:1: this file of a model is not a map; write key: value"));
  CHECK_FALSE(contains(told, "root:x"));
  const std::string huge = config_error(
      [&] { resolve_config({}, "models", named(std::string(1'000'000, 'm') + "/x")); });
  CHECK(huge.size() < 200);
}

TEST_CASE("names in a file lead into its folder, the directories and allowed folders alone") {
  const Scratch scratch, other;
  other.write("secret.yaml", "v: 7\n");
  other.write("models/ours.yaml", "v: 8\n");
  scratch.write("scenario.yaml", "x: 1\n");
  scratch.write("deep/model.yaml", "base: ../common.yaml\n");
  scratch.write("common.yaml", "v: 9\n");
  scratch.write("outer.yaml", "base: " + (other.path / "secret.yaml").string() + "\n");
  fs::create_symlink(other.path / "secret.yaml", scratch.path / "linked.yaml");
  fs::create_directory_symlink(other.path, scratch.path / "folder");
  const std::string from = (scratch.path / "scenario.yaml").string();
  const auto value = [&](const ConfigPath& path, const std::string& name) {
    return resolve_config(path, "models", named(name, from)).value.find("v")->text;
  };
  const auto fault = [&](const std::string& name) {
    return config_error([&] { value({}, name); });
  };
  CHECK(value({}, "deep/model.yaml") == "9");  // its base lies in the scenario's folder
  const std::string secret = (other.path / "secret.yaml").string();
  for (const std::string& name :
       {secret, "../" + other.path.filename().string() + "/secret.yaml", std::string("linked.yaml"),
        std::string("folder/secret.yaml"), std::string("outer.yaml")}) {
    CAPTURE(name);
    CHECK(contains(fault(name),
                   "lies outside of the scenario's folder; where that is meant, add "
                   "--allow-path "));
    CHECK(value({.allowed = {other.path.string()}}, name) == "7");
    CHECK(value({.directories = {other.path.string() + "/"}}, name) == "7");
  }
  CHECK(value({.directories = {other.path.string()}}, "ours") == "8");
  // A folder whose name only begins like it holds nothing of it; the command line may lead
  // anywhere.
  CHECK(config_error([&] {
          value({.allowed = {other.path.string().substr(0, other.path.string().size() - 1)}},
                secret);
        }) != "");
  CHECK(resolve_config({}, "models", scalar_value(secret, {"--set model=x", 0, 0}))
            .value.find("v")
            ->text == "7");
}

}  // namespace search_path_test
