// What is read from a command line by records, and what is said of one that is wrong.
#include "costmodel/cli/command_line.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "tests/costmodel/support/fixtures.hpp"

namespace command_line_test {

using namespace costmodel;
using fixtures::config_error;
using fixtures::contains;

namespace {

const Program boat{.name = "boat",
                   .commands = {{.name = "row",
                                 .operands = "WHERE",
                                 .least = 1,
                                 .most = 1,
                                 .formats = "text json",
                                 .examples = {"boat row home"}},
                                {.name = "sail", .most = 9, .formats = "text"}},
                   .flags = {{.name = "format", .value = "FORMAT"},
                             {.name = "mast", .value = "HEIGHT", .only_for = "sail"},
                             {.name = "oar", .letter = 'o', .value = "SIDE", .words = "port both"},
                             {.name = "man", .value = "NAME", .repeatable = true},
                             {.name = "cargo", .value = "THING ...", .several = true},
                             {.name = "fast"},
                             {.name = "help"}}};
const Program raft{.name = "raft",
                   .commands = {{.name = "drift", .most = 1}},
                   .flags = {{.name = "with", .value = "N"}, {.name = "tide", .only_for = "sea"}}};

CommandLine read(const Program& program, std::vector<const char*> words) {
  words.insert(words.begin(), "program");
  return parse(program, static_cast<int>(words.size()), words.data());
}

std::string fault(const Program& program, const std::vector<const char*>& words) {
  return config_error([&] { read(program, words); });
}

}  // namespace

TEST_CASE("flags and words may stand in any order, and -- ends the flags") {
  const std::vector<std::vector<const char*>> lines{
      {"row", "home", "--man", "a", "--man=b", "-o", "port", "--fast"},
      {"--fast", "--man", "a", "row", "-oport", "--man", "b", "--", "home"}};
  for (const auto& words : lines) {
    const CommandLine line = read(boat, words);
    CHECK(line.command->name == "row");
    CHECK(line.operands == std::vector<std::string>{"home"});
    CHECK(line.words("man") == std::vector<std::string>{"a", "b"});
    CHECK(line.word("oar") == "port");
    CHECK(line.has("fast"));
    CHECK_FALSE(line.has("mast"));
    CHECK(line.word("mast", "none") == "none");
  }
  CHECK(read(boat, {"row", "home", "--cargo", "a", "b"}).words("cargo").size() == 2);
}

TEST_CASE("a program of one command takes no command's name") {
  const CommandLine line = read(raft, {"away"});
  CHECK(line.command->name == "drift");
  CHECK(line.operands == std::vector<std::string>{"away"});
  CHECK(raft.title() == "raft drift");
  CHECK(boat.title() == "boat");
}

TEST_CASE("what is wrong is told with what is allowed") {
  CHECK(fault(boat, {}) == "boat: no command is given; see boat --help");
  CHECK(fault(boat, {"roww"}) ==
        "boat: unknown command 'roww'; did you mean 'row'? known: row, sail");
  CHECK(fault(boat, {"row"}) ==
        "boat: 'row' takes WHERE, nothing is given; example: boat row home");
  CHECK(fault(boat, {"row", "home", "--mast", "3"}) ==
        "boat: --mast does not go with 'row'; it belongs to 'sail'");
  CHECK(fault(boat, {"row", "home", "--mats", "3"}) ==
        "boat: unknown flag '--mats'; --mast belongs to 'sail'; 'row' knows --format, --oar, "
        "--man, --cargo, --fast, --help");
  CHECK(fault(boat, {"row", "home", "--fats"}) ==
        "boat: unknown flag '--fats'; did you mean '--fast'? known: --format, --oar, --man, "
        "--cargo, --fast, --help");
  CHECK(fault(boat, {"row", "home", "--oar", "left"}) ==
        "boat: --oar left is not known; allowed: port, both");
  CHECK(fault(boat, {"row", "home", "--oar", "prot"}) ==
        "boat: --oar prot is not known; did you mean 'port'? known: port, both");
  CHECK(fault(boat, {"sail", "--format", "json"}) ==
        "boat: 'sail' does not print the format 'json'; allowed: text");
  CHECK(fault(boat, {"sail", "--mast"}) ==
        "boat: the required argument for option '--mast' is missing; see boat --help");
  CHECK(read(boat, {"row", "--help"}).has("help"));  // without its word
}

TEST_CASE("numbers are whole words") {
  const auto three = read(raft, {"--with", "3"});
  CHECK(number_of(raft, three, "with", 1) == 3);
  CHECK(number_of(raft, read(raft, {}), "with", 1.5) == 1.5);
  for (const char* wrong : {"3x", "x", "", "-1", "1.5"}) {
    const auto line = read(raft, {"--with", wrong});
    CHECK(config_error([&] {
            number_of(raft, line, "with", std::uint64_t{1});
          }).starts_with("raft drift: --with '"));
  }
}

TEST_CASE("flags of other words than the one chosen are found") {
  const auto line = read(raft, {"--tide"});
  CHECK(misplaced(raft, line, "sea") == nullptr);
  REQUIRE(misplaced(raft, line, "lake") != nullptr);
  CHECK(misplaced(raft, line, "lake")->name == "tide");
  CHECK(admits("", "lake"));
  CHECK_FALSE(admits("sea river", "lake"));
}

TEST_CASE("a flag of two commands is that of the command given") {
  Program both = boat;
  both.flags.push_back({.name = "deep", .only_for = "row"});
  both.flags.push_back({.name = "deep", .value = "METRES", .only_for = "sail"});
  CHECK(read(both, {"row", "home", "--deep"}).words("deep").empty());
  CHECK(read(both, {"sail", "--deep", "7"}).word("deep") == "7");
  CHECK(contains(config_error([&] { read(both, {"sail", "--deep"}); }), "deep"));
  CHECK(read(both, {"--help"}).has("help"));
}

}  // namespace command_line_test
