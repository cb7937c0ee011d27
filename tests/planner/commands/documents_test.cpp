// Every command of every page is run, and prints what the page shows: a hundred commands, so some
// seconds; under sanitizers the README's alone. SHARDPLAN_UPDATE_GOLDEN=1 writes what is printed.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include "tests/planner/support/document_commands.hpp"
#include "tests/planner/support/documents.hpp"
#include "tests/sanitized.hpp"

namespace documents_test {

namespace {

using documents::Lines;

bool updating() { return std::getenv("SHARDPLAN_UPDATE_GOLDEN") != nullptr; }

// A folder in which commands find what they find in the root of a clone.
void furnish(const program::Scratch& folder) {
  namespace fs = std::filesystem;
  for (const char* name : {"configs", "docs", "tests"})
    fs::create_directory_symlink(fs::path(SHARDPLAN_SOURCE_DIR) / name, folder.path() / name);
  fs::create_directory(folder.path() / "scripts");
  fs::create_symlink(SHARDPLAN_EXECUTABLE, folder.path() / "scripts/shardplan");
}

// The exit status that a comment behind the command names, else 0.
int expected_status(const std::string& command) {
  std::smatch found;
  static const std::regex comment(" # .*status ([0-9]+)");
  return std::regex_search(command, found, comment) ? std::stoi(found[1].str()) : 0;
}

Lines lines_between(const Lines& page, std::size_t first, std::size_t last) {
  return {page.begin() + static_cast<std::ptrdiff_t>(first),
          page.begin() + static_cast<std::ptrdiff_t>(last)};
}

std::string text_of(const Lines& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

// Runs a command; in a console what it prints is what is shown. Returns what the page is to show.
Lines check_command(const Lines& shown, const documents::Command& command, bool console,
                    const program::Scratch& folder) {
  CAPTURE(command.text);
  CHECK(documents::fault_of(command.text) == "");
  if (documents::reason_not_to_run(command.text) != nullptr) return shown;
  REQUIRE(command.text.find("--out configs") == std::string::npos);  // a link to the sources
  const auto run = documents::typed(command.text, folder.path().string());
  CHECK_MESSAGE(run.status == expected_status(command.text), run.out);
  if (!console) return shown;
  const Lines real = golden::lines_of(run.out);
  const auto missing = documents::not_printed(shown, real);
  if (!missing.has_value()) return shown;
  const Lines now = documents::renewed(shown, real);
  if (updating() && documents::is_excerpt(now, real)) return now;
  FAIL_CHECK("shown and not printed:\n" << text_of(*missing) << "printed:\n" << run.out);
  return shown;
}

// Returns the page with what its commands print now.
Lines check_page(const std::string& name) {
  const Lines page = documents::read(name);
  const program::Scratch folder;
  furnish(folder);
  for (const auto& block : documents::blocks_of(page))
    if (const auto file = documents::file_name_of(page, block); !file.empty())
      folder.write(file, documents::file_text_of(page, block));
  Lines out;
  std::size_t done = 0;
  for (const auto& block : documents::blocks_of(page)) {
    for (const auto& command : documents::commands_of(page, block)) {
      const Lines before = lines_between(page, done, command.first);
      out.insert(out.end(), before.begin(), before.end());
      const Lines shown = lines_between(page, command.first, command.last);
      const Lines now = check_command(shown, command, block.kind == "console", folder);
      out.insert(out.end(), now.begin(), now.end());
      done = command.last;
    }
  }
  const Lines rest = lines_between(page, done, page.size());
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

}  // namespace

TEST_CASE("every command of every page runs and prints what the page shows") {
  for (const auto& name : documents::all()) {
    if (sanitized && name != "README.md") continue;
    CAPTURE(name);
    const Lines now = check_page(name);
    if (updating() && now != documents::read(name)) documents::write(name, now);
  }
}

TEST_CASE("every reason not to run a command is needed") {
  std::set<std::string_view> used;
  for (const auto& name : documents::all()) {
    const Lines page = documents::read(name);
    for (const auto& block : documents::blocks_of(page))
      for (const auto& command : documents::commands_of(page, block))
        if (const auto* entry = documents::reason_not_to_run(command.text))
          used.insert(entry->words);
  }
  for (const auto& entry : documents::not_run)
    CHECK_MESSAGE(used.contains(entry.words), entry.words);
}

TEST_CASE("an excerpt begins and ends as what is printed, and has nothing that is not") {
  const Lines real = {"a", "b", "c 1", "d", "e"};
  CHECK(documents::is_excerpt(real, real));
  CHECK(documents::is_excerpt({"a", "...", "c 1", "...", "e"}, real));
  CHECK(documents::is_excerpt({"...", "c 1", "..."}, real));
  CHECK(documents::is_excerpt({"a", "..."}, real));
  CHECK_FALSE(documents::is_excerpt({"a", "b"}, real));
  CHECK_FALSE(documents::is_excerpt({"b", "..."}, real));
  CHECK_FALSE(documents::is_excerpt({"a", "...", "d"}, real));
  CHECK_FALSE(documents::is_excerpt({"a", "...", "d", "...", "c 1", "...", "e"}, real));
  CHECK_FALSE(documents::is_excerpt({"a", "...", "c 2", "...", "e"}, real));
  CHECK(documents::renewed({"a", "...", "c 2", "...", "e"}, real) ==
        Lines{"a", "...", "c 1", "...", "e"});
  CHECK(documents::renewed({"a"}, real) == real);
  CHECK(documents::renewed({"a", "...", "x", "...", "e"}, real) ==
        Lines{"a", "...", "x", "...", "e"});
  CHECK(documents::is_excerpt({"...", "one and ...", "..."}, {"0", "one and two", "3"}));
  CHECK_FALSE(documents::is_excerpt({"...", "one or ...", "..."}, {"0", "one and two", "3"}));
  CHECK(documents::renewed({"...", "one 2 ...", "..."}, {"0", "one 3 more", "4"}) ==
        Lines{"...", "one 3 ...", "..."});
}

TEST_CASE("a command that does not exist, or has no such flag, is found") {
  CHECK(documents::fault_of("shardplan plan my.yaml --top 3") == "");
  CHECK(documents::fault_of("shardplan plan|evaluate my.yaml --sensitivity") == "");
  CHECK(documents::fault_of("scripts/shardplan plant my.yaml") == "no command 'plant'");
  CHECK(documents::fault_of("shardplan plan my.yaml --topmost 3") == "plan has no flag --topmost");
}

}  // namespace documents_test
