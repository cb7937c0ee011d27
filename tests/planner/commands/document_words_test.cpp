// What pages say beside their commands' output: links, commands in a sentence, figures, the
// README's length. docs/accuracy.md is what `validate` writes, and first, because others quote it;
// SHARDPLAN_UPDATE_GOLDEN=1 writes both.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include "tests/planner/support/document_commands.hpp"
#include "tests/planner/support/documents.hpp"
#include "tests/sanitized.hpp"

namespace document_words_test {

namespace {

using documents::Lines;

bool updating() { return std::getenv("SHARDPLAN_UPDATE_GOLDEN") != nullptr; }

}  // namespace

// Takes most of this file's time: every run of the evidence is predicted, and serving's sources are
// left out of its fit one at a time, which takes too long under sanitizers.
TEST_CASE("docs/accuracy.md is what validate writes") {
  const std::string evidence = sanitized ? "" : " configs/evidence/serving";
  const auto run =
      documents::typed("'" SHARDPLAN_EXECUTABLE "' validate configs/evidence" + evidence +
                           " --quiet --format md --notes docs/known-errors.md",
                       SHARDPLAN_SOURCE_DIR);
  const Lines real = golden::lines_of(run.out);
  REQUIRE(real.size() > 100);
  if (updating() && !sanitized) documents::write("docs/accuracy.md", real);
  Lines page = documents::read("docs/accuracy.md");
  if (sanitized) page.resize(std::min(page.size(), real.size()));
  CHECK(page == real);
}

TEST_CASE("docs/report.svg is what scripts/report-picture draws") {
  if (documents::typed("command -v python3", SHARDPLAN_SOURCE_DIR).status != 0) {
    MESSAGE("skipped: python3 draws it, and is missing");
    return;
  }
  const auto run =
      documents::typed("scripts/report-picture '" SHARDPLAN_EXECUTABLE "'", SHARDPLAN_SOURCE_DIR);
  const Lines drawn = golden::lines_of(run.out);
  CHECK_MESSAGE(run.status == 0, run.out);
  if (updating() && run.status == 0) documents::write("docs/report.svg", drawn);
  CHECK((documents::read("docs/report.svg") == drawn));
}

namespace {

// Lines of a page, outside of blocks.
Lines prose_of(const Lines& page) {
  Lines prose;
  bool fenced = false;
  for (const auto& line : page) {
    if (line.starts_with("```")) fenced = !fenced;
    if (!fenced) prose.push_back(line);
  }
  return prose;
}

// The pieces between backquotes, also over the end of a line.
std::vector<std::string> code_of(const Lines& page) {
  std::vector<std::string> pieces;
  std::string text;
  for (const auto& line : prose_of(page)) text += line.empty() ? "\n\n" : line + " ";
  static const std::regex code("`([^`\n]+)`");
  for (auto it = std::sregex_iterator(text.begin(), text.end(), code); it != std::sregex_iterator();
       ++it)
    pieces.push_back((*it)[1].str());
  return pieces;
}

// Of a heading, as GitHub makes it.
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : heading.substr(heading.find_first_not_of("# "))) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u) || c == '-' || c == '_' || u >= 128)
      anchor += static_cast<char>(std::tolower(u));
    if (c == ' ') anchor += '-';
  }
  return anchor;
}

std::vector<std::string> links_of(const Lines& page) {
  std::vector<std::string> links;
  static const std::regex link("\\]\\(([^) ]+)\\)"), code("`[^`]*`");
  for (const auto& line : prose_of(page)) {
    const std::string text = std::regex_replace(line, code, "");
    for (auto it = std::sregex_iterator(text.begin(), text.end(), link);
         it != std::sregex_iterator(); ++it)
      if (!(*it)[1].str().starts_with("http")) links.push_back((*it)[1].str());
  }
  return links;
}

// "" where it leads somewhere.
std::string fault_of_link(const std::string& page, const std::string& link) {
  namespace fs = std::filesystem;
  const std::string file = link.substr(0, link.find('#'));
  const fs::path target = file.empty() ? fs::path(page) : fs::path(page).parent_path() / file;
  if (!fs::exists(SHARDPLAN_SOURCE_DIR / target))
    return "no file " + target.lexically_normal().string();
  if (link.find('#') == std::string::npos) return "";
  for (const auto& line : prose_of(documents::read(target.lexically_normal().string())))
    if (line.starts_with('#') && anchor_of(line) == link.substr(link.find('#') + 1)) return "";
  return "no heading " + link;
}

}  // namespace

TEST_CASE("links between pages lead to a file, and to a heading in it") {
  for (const auto& page : documents::all())
    for (const auto& link : links_of(documents::read(page)))
      CHECK_MESSAGE(fault_of_link(page, link) == "", page);
}

TEST_CASE("docs/README.md names every page of its folder") {
  const Lines links = links_of(documents::read("docs/README.md"));
  for (const auto& page : documents::all()) {
    const std::string name = page.substr(page.find('/') + 1);
    if (!page.starts_with("docs/") || name == "README.md") continue;
    CHECK_MESSAGE(std::find(links.begin(), links.end(), name) != links.end(), page);
  }
}

namespace {

// `plan --front` stands for shardplan plan --front.
std::string as_typed(const std::string& piece) {
  std::smatch found;
  static const std::regex shape("([a-z][a-z-]*)(\\|[a-z|-]+)? .*--.*");
  const bool command = std::regex_match(piece, found, shape) && found[1] != "shardplan";
  return command && !documents::help_of(found[1].str()).empty() ? "shardplan " + piece : piece;
}

}  // namespace

TEST_CASE("a command in a sentence exists, and has the flags that stand behind it") {
  for (const auto& page : documents::all())
    for (const auto& piece : code_of(documents::read(page)))
      CHECK_MESSAGE(documents::fault_of(as_typed(piece)) == "", page << ": " << piece);
}

namespace {

// In characters.
std::size_t width_of(const std::string& line) {
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80;
  }));
}

}  // namespace

TEST_CASE("the README is short, and shows a scenario at once") {
  const Lines page = documents::read("README.md");
  CHECK(page.size() <= 130);
  for (const auto& line : page) CHECK_MESSAGE(width_of(line) <= 120, line);
  const auto scenario = std::find(page.begin(), page.end(), "```yaml");
  CHECK(scenario - page.begin() < 25);
}

// Below "<!-- docs/accuracy.md -->" stand lines of that page.
TEST_CASE("figures of accuracy that pages quote are those of docs/accuracy.md") {
  const Lines source = documents::read("docs/accuracy.md");
  int quotes = 0;
  for (const auto& name : documents::all()) {
    Lines page = documents::read(name);
    bool quoted = false, changed = false;
    for (auto& line : page) {
      if (line.empty()) quoted = false;
      if (quoted && std::find(source.begin(), source.end(), line) == source.end()) {
        const auto like = std::find_if(source.begin(), source.end(), [&](const std::string& other) {
          return documents::detail::letters_of(other) == documents::detail::letters_of(line);
        });
        CHECK_MESSAGE((updating() && like != source.end()), name << ": " << line);
        if (updating() && like != source.end()) line = *like, changed = true;
      }
      quotes += quoted;
      if (line == "<!-- docs/accuracy.md -->") quoted = true;
    }
    if (changed) documents::write(name, page);
  }
  CHECK(quotes >= 5);
}

}  // namespace document_words_test
