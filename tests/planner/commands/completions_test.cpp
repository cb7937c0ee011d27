#include "planner/commands/completions.hpp"

#include <doctest/doctest.h>

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <utility>

#include "costmodel/base/error.hpp"
#include "planner/commands/commands.hpp"
#include "tests/run_program.hpp"

namespace completions_test {

using planner::completions;
using planner::manual_page;
using planner::shardplan;

TEST_CASE("every command and every flag is completed, and stands in the manual") {
  const std::string man = manual_page(shardplan());
  const std::string shells[]{completions(shardplan(), "bash"), completions(shardplan(), "zsh"),
                             completions(shardplan(), "fish")};
  for (const auto& command : shardplan().commands) {
    CAPTURE(std::string(command.name));
    for (const std::string& text : shells) CHECK(text.find(command.name) != std::string::npos);
  }
  for (const auto& flag : shardplan().flags) {
    CAPTURE(std::string(flag.name));
    CHECK(shells[0].find(fmt::format("--{}", flag.name)) != std::string::npos);
    CHECK(shells[1].find(fmt::format("--{}[", flag.name)) != std::string::npos);
    CHECK(shells[2].find(fmt::format(" -l {} ", flag.name)) != std::string::npos);
    const std::string roff = program::replaced(std::string(flag.name), "-", "\\-");
    CHECK(man.find("\\-\\-" + roff) != std::string::npos);
  }
  CHECK_THROWS_WITH_AS(completions(shardplan(), "bsh"), doctest::Contains("did you mean 'bash'"),
                       costmodel::ConfigError);
}

TEST_CASE("bash completes commands, flags, their words and names") {
  const program::Scratch scratch;
  scratch.write("shardplan.bash", completions(shardplan(), "bash"));
  const auto completed = [&](const std::string& line) {
    std::string words;
    for (const auto& word : program::words_of(line)) words += "'" + word + "' ";
    if (line.ends_with(' ')) words += "''";
    scratch.write("ask.bash", fmt::format("compopt() {{ :; }}\nshardplan() {{ '{}' \"$@\"; }}\n"
                                          ". ./shardplan.bash\nCOMP_WORDS=({})\n"
                                          "COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n"
                                          "_shardplan\necho \"${{COMPREPLY[*]}}\" >out\n",
                                          SHARDPLAN_EXECUTABLE, words));
    REQUIRE(std::system(fmt::format("cd '{}' && bash ask.bash", scratch.path().string()).c_str()) ==
            0);
    return scratch.read("out");
  };
  CHECK(completed("shardplan sim") == "simulate\n");
  CHECK(completed("shardplan plan --strat") == "--strategy\n");
  CHECK(completed("shardplan plan --strategy la") == "layouts\n");
  CHECK(completed("shardplan plan --cluster sel") == "selene\n");
  CHECK(completed("shardplan evaluate x --set plan.t") == "plan.tp\n");
  CHECK(completed("shardplan evaluate gpt3-175b-se") == "gpt3-175b-selene\n");
}

TEST_CASE("fish completes by its own engine and zsh can read its words, where they are installed") {
  const program::Scratch scratch;
  std::filesystem::create_directories(scratch.path() / "bin");
  scratch.write("bin/_shardplan", completions(shardplan(), "zsh"));
  scratch.write("shardplan.fish", completions(shardplan(), "fish"));
  scratch.write("bin/shardplan",
                fmt::format("#!/bin/sh\nexec '{}' \"$@\"\n", SHARDPLAN_EXECUTABLE));
  const auto asked = [&](const char* shell, const std::string& words) {
    const std::string command = fmt::format(
        "cd '{}' && chmod +x bin/shardplan && export PATH=\"$PWD/bin:$PATH\" && "
        "if ! command -v {} >/dev/null; then echo none >out; else {}; fi",
        scratch.path().string(), shell, words);
    REQUIRE(std::system(command.c_str()) == 0);
    return scratch.read("out");
  };
  // Its completion asks for a terminal and its time; that every line parses does not.
  const std::string zsh = asked("zsh", "zsh -n bin/_shardplan && echo parsed >out");
  CHECK((zsh == "none\n" || zsh == "parsed\n"));
  for (const auto& [line, word] : {std::pair("shardplan sim", "simulate"),
                                   {"shardplan plan --strat", "--strategy"},
                                   {"shardplan plan --strategy la", "layouts"},
                                   {"shardplan plan --cluster sel", "selene"},
                                   {"shardplan evaluate gpt3-175b-se", "gpt3-175b-selene"},
                                   {"shardplan list mod", "models"}}) {
    CAPTURE(line);
    const std::string fish = asked(
        "fish",
        fmt::format("fish --no-config -c \"source shardplan.fish; complete -C '{}'\" >out", line));
    CHECK((fish == "none\n" || fish.starts_with(word)));
  }
}

}  // namespace completions_test
