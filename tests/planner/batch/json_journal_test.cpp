#include "planner/batch/json_journal.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "costmodel/base/error.hpp"
#include "costmodel/base/fingerprint.hpp"
#include "tests/run_program.hpp"

namespace json_journal_test {

using costmodel::fingerprint;
using planner::Journal;
using planner::JournalEntry;
using program::Scratch;

TEST_CASE("what was added is there again, but for a line cut short") {
  const Scratch scratch;
  const JournalEntry entry{
      .name = "x", .key = "k", .inputs = {{"/f", "1"}}, .status = 3, .report = "r", .page = "p"};
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
    CHECK(back.page == entry.page);
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
  scratch.write("x.html", "<p>");
  const std::string input = scratch.path() / "in.yaml", report = scratch.path() / "x.json",
                    page = scratch.path() / "x.html";
  const planner::JobFiles files{input, report, page};
  const JournalEntry entry{.name = "x",
                           .key = "k",
                           .inputs = {{input, fingerprint("a")}},
                           .status = 0,
                           .report = fingerprint("{}"),
                           .page = fingerprint("<p>")};
  CHECK(is_up_to_date(entry, "k", files));
  CHECK_FALSE(is_up_to_date(entry, "other", files));
  CHECK_FALSE(is_up_to_date(entry, "k", {input, report + "none", page}));
  scratch.write("in.yaml", "b");
  CHECK_FALSE(is_up_to_date(entry, "k", files));
  scratch.write("in.yaml", "a");
  CHECK_FALSE(is_up_to_date(entry, "k", {page, report, page}));  // it has not the scenario
  scratch.write("x.html", "edited");
  CHECK_FALSE(is_up_to_date(entry, "k", files));
  scratch.write("x.html", "<p>");
  std::filesystem::rename(report, input + ".json");
  std::filesystem::create_symlink("in.yaml.json", report);
  CHECK_FALSE(is_up_to_date(entry, "k", files));
  std::filesystem::remove(report);
  scratch.write("x.json", "{ }");
  CHECK_FALSE(is_up_to_date(entry, "k", files));
  for (const char* other : {"/dev/zero", "/proc/self", "gone"}) {
    JournalEntry forged = entry;
    forged.inputs.emplace(other, "0");
    CHECK_FALSE(is_up_to_date(forged, "k", files));
  }
}

TEST_CASE("a line of another shape counts for nothing") {
  const Scratch scratch;
  const std::string deep(100'000, '[');
  scratch.write("journal.jsonl", "[]\n{\"name\": 1}\n1e999\n{\"name\": \"x\", \"key\": " + deep +
                                     "\n\xff\n{\"name\":\"x\",\"key\":\"k\",\"inputs\":7,"
                                     "\"status\":0,\"report\":\"\",\"page\":\"\"}\n");
  CHECK(Journal(scratch.path()).entries().empty());
}

}  // namespace json_journal_test
