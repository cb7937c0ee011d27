// The command line's words.
#include "planner/commands/options.hpp"

#include <doctest/doctest.h>

#include "planner/commands/commands.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace options_test {

using namespace planner;
using fixtures::config_error;
using fixtures::contains;

namespace {

Options parse(std::vector<const char*> words) {
  words.insert(words.begin(), "shardplan");
  return parse_command_line(shardplan(), static_cast<int>(words.size()), words.data());
}

std::string fault(const std::vector<const char*>& words) {
  return config_error([&] { parse(words); });
}

}  // namespace

TEST_CASE("flags and operands may stand in any order") {
  const Options a =
      parse({"evaluate", "s.yaml", "--format", "json", "--set", "a=1", "--set", "b=2"});
  const Options b = parse({"--set", "a=1", "--format=json", "evaluate", "--set=b=2", "s.yaml"});
  for (const Options& options : {a, b}) {
    CHECK(options.command == "evaluate");
    CHECK(options.operands == std::vector<std::string>{"s.yaml"});
    CHECK(options.format == Format::json);
    CHECK(options.assignments == std::vector<std::string>{"a=1", "b=2"});
  }
}

TEST_CASE("values of flags") {
  CHECK(parse({"plan", "s", "--top", "7"}).top == 7);
  CHECK(parse({"plan", "s", "--front", "--format", "md"}).front);
  CHECK_FALSE(parse({"plan", "s"}).front);
  CHECK(parse({"plan", "s"}).strategy.empty());
  CHECK(parse({"plan", "s", "--time-limit", "2"}).time_limit == 2);  // the scenario decides
  const Options both =
      parse({"plan", "s", "--strategy", "both", "--time-limit", "2.5", "--threads", "3"});
  CHECK(both.strategy == "both");
  CHECK(both.time_limit == 2.5);
  CHECK(both.threads == 3);
  const Options against =
      parse({"validate", "e", "--against-planner", "--strategy", "alpa", "--threads", "2"});
  CHECK(against.against_planner);
  CHECK(against.strategy == "alpa");
  CHECK(against.threads == 2);
  CHECK(parse({"validate", "e", "--against-planner", "--threads", "2"}).threads == 2);
  CHECK_FALSE(parse({"validate", "e"}).against_planner);
  CHECK(parse({"simulate", "s", "--trace", "t.json"}).trace == "t.json");
  CHECK(parse({"export", "s", "--to", "megatron"}).to == "megatron");
  CHECK(parse({"sweep", "s", "--over", "tp=1", "--over", "pp=1"}).over.size() == 2);
  CHECK(parse({"list", "models", "--config-path", "a", "--config-path", "b"}).config_path.size() ==
        2);
  CHECK(parse({"plan", "s", "--quiet"}).quiet);
  CHECK(parse({"--version"}).version);
  CHECK(parse({"--help"}).help);
  CHECK(parse({"plan", "--help"}).command == "plan");
  CHECK(parse({"plan", "s", "--color", "never"}).color == "never");
  CHECK(parse({"plan", "--", "-odd-name"}).operands == std::vector<std::string>{"-odd-name"});
}

TEST_CASE("bad usage is told with what is allowed") {
  CHECK(contains(fault({}), "no command is given"));
  CHECK(contains(fault({"evalute", "s"}), "did you mean 'evaluate'?"));
  CHECK(contains(fault({"plan", "s", "--tpo", "3"}), "did you mean '--top'?"));
  CHECK(contains(fault({"plan", "s", "--for", "json"}), "unknown flag"));  // no guessing
  CHECK(contains(fault({"plan"}), "nothing is given"));
  CHECK(contains(fault({"plan", "a", "b"}), "2 words are given"));
  CHECK(contains(fault({"import", "hf", "a", "b"}), "3 words are given"));
  CHECK(contains(fault({"plan", "s", "--to", "megatron"}), "export"));
  CHECK(contains(fault({"evaluate", "s", "--tpo", "3"}), "--top belongs to 'plan'"));
  CHECK(contains(fault({"plan", "s", "--strategy", "alpha"}), "did you mean 'alpa'?"));
  CHECK(contains(fault({"plan", "s", "--strategy", "grid", "--threads", "2"}),
                 "does not go with --strategy grid"));
  CHECK(
      contains(fault({"plan", "s", "--strategy", "alpa", "--time-limit", "0"}), "--time-limit 0"));
  CHECK(contains(fault({"plan", "s", "--front", "--format", "csv"}), "allowed: text, json, md"));
  CHECK(contains(fault({"plan", "s", "--front", "--strategy", "meshes"}),
                 "does not go with --strategy meshes"));
  CHECK(contains(fault({"simulate", "s", "--strategy", "alpa"}), "belongs to 'plan validate'"));
  CHECK(contains(fault({"validate", "e", "--threads", "2"}), "add --against-planner"));
  CHECK(contains(fault({"validate", "e", "--strategy", "alpa"}), "add --against-planner"));
  CHECK(contains(fault({"validate", "e", "--against-planner", "--strategy", "both"}),
                 "allowed: grid, alpa"));
  CHECK(contains(fault({"validate", "e", "--against-planner", "--fit", "f"}),
                 "--fit does not go with --against-planner"));
  CHECK(contains(fault({"plan", "s", "--against-planner"}), "belongs to 'validate'"));
  CHECK(contains(fault({"simulate", "s", "--format", "csv"}), "allowed: text json"));
  for (const auto* top : {"0", "-1", "1001", "x", "", "99999999999999"})
    CHECK(contains(fault({"plan", "s", "--top", top}), "--top"));
}

TEST_CASE("flags belong to commands that there are, and commands have examples") {
  const auto& all = shardplan();
  for (const costmodel::Flag& flag : all.flags) {
    CAPTURE(flag.name);
    CHECK_FALSE(flag.help.empty());
    for (const std::string& command : costmodel::split_words(flag.only_for))
      CHECK(std::ranges::count(all.commands, command, &costmodel::Command::name) == 1);
  }
  for (const costmodel::Command& command : all.commands) {
    CAPTURE(command.name);
    CHECK((is_handed_over(command.name) || command.examples.size() >= 2));
    for (const auto example : command.examples)
      CHECK(example.starts_with("shardplan " + std::string(command.name) + " "));
  }
}

}  // namespace options_test
