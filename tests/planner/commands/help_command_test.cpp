#include "planner/commands/help_command.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "planner/commands/commands.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/golden.hpp"
#include "tests/run_program.hpp"

namespace help_command_test {

using fixtures::contains;
using program::run;
using program::Run;
using program::Scratch;
using program::words_of;

TEST_CASE("without a word, ten lines say what can be typed, and each begins with a command") {
  const Scratch scratch;
  const Run none = run({}, scratch);
  CHECK(none.status == 2);
  CHECK(none.out == "");
  CHECK(none.err == planner::opening());
  const auto lines = golden::lines_of(none.err);
  REQUIRE(lines.size() == 10);
  const auto& commands = planner::shardplan().commands;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::string word = words_of(lines[i])[1];
    CAPTURE(lines[i]);
    CHECK(std::ranges::count(commands, word, &costmodel::Command::name) == 1);
    CHECK(lines[i].size() <= 100);
  }
}

TEST_CASE("help on a command is what --help says, and topics are known by several words") {
  const Scratch scratch;
  CHECK(run(words_of("help plan"), scratch).out == run(words_of("plan --help"), scratch).out);
  CHECK(run(words_of("help"), scratch).out.starts_with(run(words_of("--help"), scratch).out));
  CHECK(contains(run(words_of("help"), scratch).out, planner::help_topics()));
  CHECK(run(words_of("help exit status"), scratch).out ==
        run(words_of("help exit-status"), scratch).out);
  for (const std::string topic : {"scenario", "keys", "formats", "numbers", "exit-status"}) {
    CAPTURE(topic);
    CHECK(run({"help", topic}, scratch).status == 0);
    CHECK(contains(planner::help_topics(), topic));
    for (const auto& line : golden::lines_of(run({"help", topic}, scratch).out))
      CHECK(line.size() <= 100);
  }
  const Run wrong = run(words_of("help plann"), scratch);
  CHECK(wrong.status == 2);
  CHECK(contains(wrong.err, "did you mean 'plan'?"));
}

TEST_CASE("the version has a command and a letter") {
  const Scratch scratch;
  const Run version = run({"--version"}, scratch);
  CHECK(version.status == 0);
  CHECK(version.out == planner::version_text());
  CHECK(run({"version"}, scratch).out == version.out);
  CHECK(run({"-V"}, scratch).out == version.out);
}

TEST_CASE("commands that are programs of their own say what they do where these are absent") {
  const Scratch scratch;  // the program alone
  std::filesystem::copy_file(SHARDPLAN_EXECUTABLE, scratch.path() / "shardplan");
  for (const std::string command : {"run", "calibrate"}) {
    CAPTURE(command);
    const std::string alone = "cd " + scratch.path().string() + " && ./shardplan " + command;
    CHECK(std::system((alone + " --help > help.txt").c_str()) == 0);
    CHECK(contains(scratch.read("help.txt"), "usage: shardplan " + command));
    CHECK(std::system((alone + " x > out.txt 2> fault.txt").c_str()) != 0);
    CHECK(contains(scratch.read("fault.txt"), "needs the program shardplan-" + command));
  }
}

}  // namespace help_command_test
