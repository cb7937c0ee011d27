// Help is made from the records: layout, and which flags stand where.
#include "costmodel/cli/help.hpp"

#include <doctest/doctest.h>

namespace help_test {

using namespace costmodel;

namespace {

const Program boat{
    .name = "boat",
    .summary = "On the water.",
    .commands = {{.name = "row",
                  .operands = "WHERE",
                  .formats = "text json",
                  .summary = "by hand",
                  .examples = {"boat row home", "boat row away"}},
                 {.name = "sail", .operands = "a|very|long|list", .summary = "by wind"}},
    .flags =
        {{.name = "format", .value = "FORMAT", .help = "where it makes sense"},
         {.name = "mast", .value = "HEIGHT", .help = "of the mast", .only_for = "sail"},
         {.name = "oars",
          .help =
              "a sentence so long that it does not stand in one line of a hundred columns at all",
          .only_for = "row"},
         help_flag},
    .ending = "the end\n"};

}  // namespace

TEST_CASE("the program's help has its commands and the flags that all of them take") {
  CHECK(help_of(boat, nullptr) ==
        "usage: boat COMMAND ... [flags]\n\nOn the water.\n\ncommands:\n"
        "  row WHERE              by hand\n"
        "  sail KIND              by wind\n"
        "\nflags of every command (boat COMMAND --help: all of it):\n"
        "  --format FORMAT        where it makes sense\n"
        "  -h, --help             this text\n"
        "\nthe end\n");
}

TEST_CASE("a command's help has its examples, its formats and no other command's flags") {
  CHECK(help_of(boat, &boat.commands.front()) ==
        "usage: boat row WHERE [flags]\n\nby hand\n\n"
        "example: boat row home\nexample: boat row away\n\nflags:\n"
        "  --format FORMAT        text, json (default text)\n"
        "  --oars                 a sentence so long that it does not stand in one line of a "
        "hundred columns\n"
        "                         at all\n"
        "  -h, --help             this text\n");
}

TEST_CASE("in a program of one command a flag says to which backends it belongs") {
  const Program raft{.name = "raft",
                     .commands = {{.name = "drift",
                                   .summary = "slowly",
                                   .examples = {"raft drift"},
                                   .usages = {"raft drift", "tug raft drift"}}},
                     .flags = {{.name = "tide", .help = "of the day", .only_for = "sea river"}}};
  CHECK(help_of(raft, nullptr) ==
        "usage: raft drift\n       tug raft drift\n\nslowly\n\nexample: raft drift\n\nflags:\n"
        "  --tide                 sea, river: of the day\n");
}

}  // namespace help_test
