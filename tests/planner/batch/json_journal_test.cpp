#include "planner/batch/json_journal.hpp"

#include <doctest/doctest.h>

#include "costmodel/base/error.hpp"
#include "tests/run_program.hpp"

namespace json_journal_test {

using planner::fingerprint;
using planner::Journal;
using planner::JournalEntry;
using program::Scratch;

TEST_CASE("fingerprints are FNV-1a, 64 bits") {
  CHECK(fingerprint("") == "cbf29ce484222325");
  CHECK(fingerprint("a") == "af63dc4c8601ec8c");  // Fowler, Noll, Vo: the published test vector
}

TEST_CASE("what was added is there again, but for a line cut short") {
  const Scratch scratch;
  const JournalEntry entry{.name = "x",
                           .key = "k",
                           .inputs = {{"/f", "1"}},
                           .status = 3,
                           .report = "r",
                           .row = R"({"name":"x"})"};
  {
    Journal journal(scratch.path());
    CHECK(journal.entries().empty());
    journal.add(entry, 1.5);
  }
  const std::string whole = scratch.read("journal.jsonl");
  scratch.write("journal.jsonl", whole + whole.substr(0, whole.size() / 2));
  {
    Journal journal(scratch.path());
    REQUIRE(journal.entries().size() == 1);
    const auto& [name, back] = *journal.entries().begin();
    CHECK(name == "x");
    CHECK(back.status == 3);
    CHECK(back.inputs == entry.inputs);
    CHECK(back.row == entry.row);
    JournalEntry other = entry;
    other.name = "y";
    journal.add(other, 1);
  }
  CHECK(Journal(scratch.path()).entries().size() == 2);
}

TEST_CASE("a second batch into one folder is told") {
  const Scratch scratch;
  const Journal first(scratch.path());
  CHECK_THROWS_WITH_AS(Journal(scratch.path()), doctest::Contains("another batch"),
                       costmodel::ConfigError);
}

TEST_CASE("a report is done again when it, its inputs or its command changed") {
  const Scratch scratch;
  scratch.write("in.yaml", "a");
  scratch.write("x.json", "{}");
  const std::string input = scratch.path() / "in.yaml", report = scratch.path() / "x.json";
  const JournalEntry entry{.name = "x",
                           .key = "k",
                           .inputs = {{input, fingerprint("a")}},
                           .status = 0,
                           .report = fingerprint("{}"),
                           .row = "{}"};
  CHECK(is_up_to_date(entry, "k", report));
  CHECK_FALSE(is_up_to_date(entry, "other", report));
  CHECK_FALSE(is_up_to_date(entry, "k", report + "none"));
  scratch.write("in.yaml", "b");
  CHECK_FALSE(is_up_to_date(entry, "k", report));
  scratch.write("in.yaml", "a");
  scratch.write("x.json", "{ }");
  CHECK_FALSE(is_up_to_date(entry, "k", report));
}

}  // namespace json_journal_test
