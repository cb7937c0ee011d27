// What a page of HTML must be, whatever it tells.
#pragma once

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/run_program.hpp"

namespace pages {

inline bool is_void(std::string_view tag) {
  for (const char* name : {"meta", "br", "rect", "path", "!doctype"})
    if (tag == name) return true;
  return false;
}

// Every element that is opened is closed, in its order. Elements that may stand alone need not be.
inline void check_balanced(const std::string& page) {
  std::vector<std::string> open;
  for (std::size_t at = page.find('<'); at != std::string::npos; at = page.find('<', at + 1)) {
    const bool closes = page[at + 1] == '/';
    const std::size_t from = at + (closes ? 2 : 1);
    const std::string tag = page.substr(from, page.find_first_of(" >/\n", from) - from);
    const std::size_t end = page.find('>', at);
    REQUIRE(end != std::string::npos);
    if (closes) {
      if (!open.empty() && is_void(open.back()) && open.back() != tag) open.pop_back();
      CAPTURE(page.substr(at, 60));
      REQUIRE(!open.empty());
      CHECK(open.back() == tag);
      open.pop_back();
    } else if (page[end - 1] != '/' && tag != "meta" && tag != "!doctype") {
      open.push_back(tag);
    }
    const bool raw = !closes && (tag == "script" || tag == "style");
    at = raw ? page.find("</" + tag, end) - 1 : end;
  }
  CHECK(open.empty());
}

// Nothing is loaded: no address, and a policy that forbids it.
inline void check_alone(const std::string& page) {
  for (const char* word :
       {"http:", "https:", " src=", "url(", "@import", "<link", "<img", "<iframe"}) {
    CAPTURE(word);
    CHECK(page.find(word) == std::string::npos);
  }
  CHECK(page.find("default-src 'none'") != std::string::npos);
}

inline void check_page(const std::string& page) {
  CHECK(page.starts_with("<!doctype html>"));
  CHECK(page.ends_with("</html>\n"));
  CHECK(page.size() < 2'000'000);
  check_balanced(page);
  check_alone(page);
}

// The number stands on the page as in the JSON, to the last digit.
inline void check_figure(const std::string& page, const nlohmann::ordered_json& number) {
  CAPTURE(number.dump());
  CHECK(page.find("<data value=\"" + number.dump() + "\"") != std::string::npos);
}

// The figures of a page that say their place in the JSON, and that people can read: each as
// "/time/iteration_s 17.14", of
//     <data value="17.14" data-pointer="/time/iteration_s">17.1 s</data>
inline std::set<std::string> figures_of(const std::string& page) {
  constexpr std::string_view opening = "<data value=\"", middle = "\" data-pointer=\"";
  std::set<std::string> all;
  for (std::size_t at = page.find(opening); at != std::string::npos; at = page.find(opening, at)) {
    at += opening.size();
    const std::string value = page.substr(at, page.find('"', at) - at);
    at += value.size();
    if (page.compare(at, middle.size(), middle) != 0) continue;
    at += middle.size();
    const std::string pointer = page.substr(at, page.find('"', at) - at);
    at += pointer.size() + 2;
    if (page.at(at) != '<') all.insert(pointer + " " + value);
  }
  return all;
}

struct Both {
  nlohmann::ordered_json json;
  std::string page;
};

// The same command's JSON and page.
inline Both both(const std::string& command, const program::Scratch& scratch, int status = 0) {
  CAPTURE(command);
  const auto json = program::run(program::words_of(command + " --quiet --format json"), scratch);
  const auto page = program::run(program::words_of(command + " --quiet --format html"), scratch);
  CAPTURE(page.err);
  REQUIRE(json.status == status);
  REQUIRE(page.status == status);
  check_page(page.out);
  return {nlohmann::ordered_json::parse(json.out), page.out};
}

inline bool has(const std::string& page, const std::string& text) {
  return page.find(text) != std::string::npos;
}

inline void check_numbers(const std::string& page, const nlohmann::ordered_json& numbers) {
  for (const auto& number : numbers)
    if (number.is_number() && number != 0) check_figure(page, number);
}

// The figures of an evaluated plan: time, throughput, memory, traffic.
inline void check_evaluation(const std::string& page, const nlohmann::ordered_json& e) {
  check_figure(page, e["time"]["iteration_s"]);
  check_numbers(page, e["time"]["interval_s"]);
  check_numbers(page, e["time"]["breakdown"]);
  check_numbers(page, e["time"]["hidden"]);
  for (const char* list : {"time", "memory"})
    for (const auto& stage : e[list]["stages"]) check_numbers(page, stage);
  for (const char* key : {"tokens_per_s", "model_tflops_per_device", "mfu", "hfu"})
    check_figure(page, e["throughput"][key]);
  check_figure(page, e["memory"]["peak_bytes"]);
  check_figure(page, e["memory"]["capacity_bytes"]);
  check_numbers(page, e["communication"]["per_device"]);
  check_figure(page, e["plan"]["devices"]);
}

}  // namespace pages
