// A row of a key reads, checks and describes.
#include "costmodel/config/key.hpp"

#include <doctest/doctest.h>

#include <array>

#include "costmodel/config/yaml.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace key_test {

using namespace costmodel;
using fixtures::config_error;

namespace {

enum class Sail { none, jib };
constexpr std::array<std::string_view, 2> sail_names{"none", "jib"};

struct Mast {
  double height = 1;
};

struct Sailor {
  std::string name;
};

struct Boat {
  std::string name;
  std::optional<int> oars;
  bool fast = false;
  Seconds start;
  Bytes cargo;
  std::optional<Sail> sail;
  Mast mast;
  std::vector<Sailor> crew;
  BytesPerSecond radio;
};

const Keys<Mast>& mast_rows() {
  static const auto rows = key::rows<Mast>(
      key::required_source<Mast>(), key::number<Mast>("height", &Mast::height, 1, 50, "in metres"));
  return rows;
}

const Keys<Sailor>& sailor_rows() {
  static const auto rows =
      key::rows<Sailor>(key::required(key::text<Sailor>("name", &Sailor::name, "called")));
  return rows;
}

void read_crew(const Value& list, Boat& boat) {
  for (const Value& item : list.items)
    read_map(item, "sailor", sailor_rows(), boat.crew.emplace_back());
}

const Keys<Boat>& rows() {
  static const auto all = key::rows<Boat>(
      key::required(key::text<Boat>("name", &Boat::name, "on the bow")),
      key::whole<Boat>("oars", &Boat::oars, {0, 8}, "in pairs"),
      key::flag<Boat>("fast", &Boat::fast, "or not"),
      key::number<Boat>(
          "start_s", [](Boat& b) -> Seconds& { return b.start; }, 0, 1, "until off"),
      key::number<Boat>("cargo_bytes", &Boat::cargo, 0, 1e6, "at most"),
      key::word<Boat>("sail", &Boat::sail, sail_names, "up"),
      key::map<Boat>("mast", &Boat::mast, mast_rows()),
      key::list<Boat>("crew", sailor_rows(), "on board", read_crew),
      key::or_word<Boat>(
          key::number<Boat>("radio_bytes_per_s", &Boat::radio, 1, 1e9, "of its radio"), "off",
          [](MapReader& reader, std::string_view name, Boat&) {
            return reader.text(name) == "off";
          }),
      key::remark<Boat>("log", "of the last trip"), key::note<Boat>("notes", "for people"));
  return all;
}

Boat read(const std::string& text) {
  Boat boat;
  read_map(parse_yaml(text, "b.yaml"), "boat", rows(), boat);
  return boat;
}

std::string fault(const std::string& text) {
  return config_error([&] { read(text); });
}

}  // namespace

TEST_CASE("a row puts the value in its field, with its unit") {
  const Boat boat = read(
      "{name: a, oars: 4, fast: true, start_s: 20 ms, cargo_bytes: 2 KiB, sail: jib, mast: "
      "{source: "
      "x, height: 9}}");
  CHECK(boat.name == "a");
  CHECK(boat.oars == 4);
  CHECK(boat.fast);
  CHECK(boat.start.value == doctest::Approx(0.02));
  CHECK(boat.cargo.value == 2048);
  CHECK((boat.sail == Sail::jib));
  CHECK(boat.mast.height == 9);
}

TEST_CASE("the error for what is no map names the keys of the map and an example") {
  CHECK(fault("{name: a, mast: maybe}") ==
        "b.yaml:1:17: mast is a plain value; write a map: {source: ...}; known: source, height");
  CHECK(fault("[1]").starts_with("b.yaml:1:1: boat is a list; write a map: {name: ...}; known: "));
  // Without a key that must be there the first is an example, by a word that it may be.
  static const auto loose = key::rows<Boat>(key::word<Boat>("sail", &Boat::sail, sail_names, "up"));
  Boat boat;
  CHECK(config_error([&] { read_map(parse_yaml("maybe", "b.yaml"), "boat", loose, boat); }) ==
        "b.yaml:1:1: boat is a plain value; write a map: {sail: none, ...}; known: sail");
}

TEST_CASE("a key that is absent leaves its field") {
  const Boat boat = read("{name: a}");
  CHECK_FALSE(boat.oars);
  CHECK_FALSE(boat.sail);
  CHECK(boat.mast.height == 1);
}

TEST_CASE("lists, words beside values, and what is for people") {
  const Boat boat = read(
      "{name: a, crew: [{name: b}, {name: c}], radio_bytes_per_s: 1 MB/s, log: calm, notes: [1]}");
  REQUIRE(boat.crew.size() == 2);
  CHECK(boat.crew[1].name == "c");
  CHECK(boat.radio.value == 1e6);
  CHECK(read("{name: a, radio_bytes_per_s: off}").radio.value == 0);
  CHECK(fault("{name: a, log: [1]}") == "b.yaml:1:16: log is a list; write a word");
}

TEST_CASE("the rows of a part are read into it, and described as they are") {
  const Keys<Boat> of_mast = key::of_part<Boat>(&Boat::mast, mast_rows());
  Boat boat;
  read_map(parse_yaml("{source: x, height: 7}", "m.yaml"), "boat", of_mast, boat);
  CHECK(boat.mast.height == 7);
  CHECK(described(of_mast, "boat.")[1].allowed == "1 to 50");
  CHECK(joined<Boat>(of_mast, rows()).size() == of_mast.size() + rows().size());
}

TEST_CASE("what is wrong is told as by a map's reader") {
  CHECK(fault("{oars: 4}") == "b.yaml:1:1: boat lacks the key 'name'; add name: ...");
  CHECK(fault("{name: a, oars: 9}") ==
        "b.yaml:1:17: oars: 9 is out of range; allowed: whole numbers 0 to 8");
  CHECK(fault("{name: a, sail: jbi}") ==
        "b.yaml:1:17: sail: 'jbi' is not known; did you mean 'jib'? known: none, jib");
  CHECK(fault("{name: a, mast: {height: 9}}").find("mast lacks the key 'source'") !=
        std::string::npos);
  CHECK(fault("{name: a, oar: 4}") ==
        "b.yaml:1:11: boat has no key 'oar'; did you mean 'oars'? known: name, oars, fast, "
        "start_s, cargo_bytes, sail, mast, crew, radio_bytes_per_s, log, notes");
}

TEST_CASE("rows describe themselves, those of maps by their parts") {
  const auto texts = described(rows(), "boat.");
  REQUIRE(texts.size() == 13);
  CHECK(texts[0].name == "boat.name");
  CHECK(texts[0].allowed == "text; required");
  CHECK(texts[1].allowed == "0 to 8");
  CHECK(texts[3].allowed == "0 to 1 s");
  CHECK(texts[4].allowed == "0 to 1e+06 B");
  CHECK(texts[5].allowed == "none, jib");
  CHECK(texts[6].name == "boat.mast.source");
  CHECK(texts[7].name == "boat.mast.height");
  CHECK(texts[7].help == "in metres");
  CHECK(texts[8].name == "boat.crew");
  CHECK(texts[9].name == "boat.crew[].name");
  CHECK(texts[10].allowed == "1 to 1e+09 B/s, off");
}

}  // namespace key_test
