// The page in a browser, where Chromium is installed: nothing is wrong on its console, and its
// script does what the keys and the pointer ask.
#include <doctest/doctest.h>

#include <array>
#include <cstdio>
#include <regex>
#include <string>

#include "tests/planner/support/pages.hpp"

namespace browser_test {

using pages::has;

namespace {

// What the shell command prints, errors too.
std::string printed_by(const std::string& command) {
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  std::array<char, 4096> part{};
  for (std::size_t n = 0; (n = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
    text.append(part.data(), n);
  pclose(pipe);
  return text;
}

// The page's document after its scripts, and what the browser logs.
std::string shown(const program::Scratch& scratch, const std::string& address) {
  return printed_by("HOME='" + scratch.path().string() +
                    "' timeout 100 chromium --headless --no-sandbox --disable-gpu "
                    "--no-first-run --enable-logging=stderr --virtual-time-budget=4000 "
                    "--window-size=1280,900 --dump-dom --user-data-dir='" +
                    scratch.path().string() + "/profile' '" + address + "'");
}

// Zooms in by keys, hovers, presses the button for all, and tells of each what is seen.
const std::string visitor = R"(<script>
(function () {
  var area = document.querySelector('.area'), svg = area.querySelector('svg'), seen = [];
  function tell() { seen.push(svg.getAttribute('viewBox')); }
  function press(key) { area.dispatchEvent(new KeyboardEvent('keydown', {key: key})); }
  function after(what) { setTimeout(what, 500); }
  press('+'); press('+'); press('ArrowRight');
  after(function () {
    tell();
    press('Home');
    after(function () {
      tell();
      var place = area.getBoundingClientRect();
      area.dispatchEvent(new PointerEvent('pointermove',
        {clientX: place.left + 3, clientY: place.top + 4}));
      seen.push(area.querySelector('.tip').textContent);
      document.querySelector('[data-key="+"]').click();
      after(function () { tell(); document.title = seen.join(' ; '); });
    });
  });
})();
</script></body>)";

}  // namespace

TEST_CASE("in Chromium the page logs nothing, and keys, buttons and pointer work") {
  const program::Scratch scratch;
  if (!has(shown(scratch, "data:text/html,<p>works</p>"), "<p>works</p>")) {
    MESSAGE("skipped: no chromium that starts");
    return;
  }
  for (const char* command :
       {"plan tiny-gpt-cpu --reproducible --sensitivity --upgrades --front",
        "evaluate gpt3-175b-selene", "sweep tiny-gpt-cpu --over micro_batch=1,2",
        "sweep tiny-gpt-cpu --over micro_batch=1,2 --over recompute=none,full",
        "compare tiny-gpt-cpu --with plan=auto"}) {
    CAPTURE(command);
    const auto made = program::run(
        program::words_of(std::string(command) + " --quiet --format html --out page.html"),
        scratch);
    REQUIRE((made.status == 0 || made.status == 3));  // one does not fit
    const std::string page = shown(scratch, "file://" + scratch.path().string() + "/page.html");
    CHECK(has(page, "<h1>"));
    CHECK_FALSE(has(page, "CONSOLE"));
    CHECK(has(page, "class=\"timeline\"") == has(page, "<div class=\"keys\"><button"));
  }
  program::run(program::words_of("evaluate tiny-gpt-cpu --quiet --format html --out page.html"),
               scratch);
  scratch.write("visited.html", program::replaced(scratch.read("page.html"), "</body>", visitor));
  const std::string visited = shown(scratch, "file://" + scratch.path().string() + "/visited.html");
  CHECK_FALSE(has(visited, "CONSOLE"));
  std::smatch seen;
  REQUIRE(std::regex_search(visited, seen, std::regex("<title>([^<]*)</title>")));
  CAPTURE(seen.str(1));
  CHECK(std::regex_search(
      seen.str(1), std::regex("^333333[0-9.]* 0 444444[0-9.]* 40 ; 0 0 1000000 40 ; forward 0 of "
                              "stage 0: 0 s to [0-9.]+ ms, [0-9.]+ ms ; 166666[0-9.]* 0 "
                              "666666[0-9.]* 40$")));
}

}  // namespace browser_test
