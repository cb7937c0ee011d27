// JSON is valid whatever its strings hold.
#include "costmodel/base/json_text.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "costmodel/base/error.hpp"

namespace json_text_test {

using Json = nlohmann::ordered_json;

TEST_CASE("values and keys that are not UTF-8 become U+FFFD, and nothing is thrown") {
  const Json json{{"n\xff", "v\xc3"}};
  CHECK(costmodel::json_line(json) == "{\"n\uFFFD\":\"v\uFFFD\"}");
  CHECK(costmodel::json_text(json) == "{\n  \"n\uFFFD\": \"v\uFFFD\"\n}\n");
}

TEST_CASE("invisible characters are escaped, and read back") {
  const Json json{{"title", "a\u202Eb\u009bc\x7f é"}};
  const std::string text = costmodel::json_line(json);
  CHECK(text == "{\"title\":\"a\\u202eb\\u009bc\\u007f é\"}");
  CHECK(Json::parse(text) == json);
}

TEST_CASE("a user's JSON is refused where it is none, beyond a double, or too deep") {
  using costmodel::ConfigError;
  using costmodel::parse_json;
  CHECK(parse_json(R"({"a": [1, "1e999 [[[ \" 1e999"]})", "x.json").at("a").at(0) == 1);
  CHECK_THROWS_WITH_AS(parse_json("{\n\"a\": 1e999}", "x.json"),
                       "x.json:2:6: '1e999' is beyond any number; allowed: up to 1e308",
                       ConfigError);
  CHECK_THROWS_WITH_AS(parse_json("[" + std::string(200'000, '1') + "]", "x.json"),
                       doctest::Contains("x.json:1:2: "), ConfigError);
  CHECK(parse_json("[1e-999]", "x.json").at(0) == 0);
  CHECK_THROWS_WITH_AS(parse_json("[1,\n 2", "x.json"),
                       doctest::Contains("x.json:2:3: is not JSON"), ConfigError);
  const std::string deep(300'000, '[');
  CHECK_THROWS_WITH_AS(parse_json(deep, "x.json"),
                       "x.json:1:65: values nest deeper than 64 levels; flatten the file",
                       ConfigError);
  for (const char* text : {"", "\"", "\"\\", "-", "\xff", "[\"\xc3\"]", "nan", "[1}", "{\"a\"}"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_json(text, "x.json"), ConfigError);
  }
  CHECK_THROWS_AS(costmodel::own_json("{"), costmodel::InternalError);
}

TEST_CASE("an answer begins with what it is of: an object, and each row of an array") {
  using costmodel::versioned_json;
  const Json row{{"a", "} { \\\" ["}, {"b", {{"c", Json::array({Json{{"d", 1}}})}}}};
  const auto is_versioned = [&](Json json) {
    CHECK(json.begin().key() == "format_version");
    CHECK(json["format_version"] == costmodel::format_version);
    CHECK(json["program"]["name"] == "shardplan");
    json.erase("format_version");
    json.erase("program");
    CHECK(json == row);
  };
  for (const auto written : {&costmodel::json_text, &costmodel::json_line}) {
    is_versioned(Json::parse(versioned_json(written(row))));
    const Json rows = Json::parse(versioned_json(written(Json::array({row, row}))));
    CHECK(rows.size() == 2);
    for (const Json& one : rows) is_versioned(one);
  }
  CHECK(Json::parse(versioned_json("{}")).size() == 2);
  CHECK(versioned_json("[]\n") == "[]\n");
  CHECK(versioned_json("[1, [{}]]") == "[1, [{}]]");
}

TEST_CASE("a scalar's text is a number, a Boolean or a string") {
  using costmodel::json_scalar;
  CHECK(json_scalar("7") == 7);
  CHECK(json_scalar("0.5") == 0.5);
  CHECK(json_scalar("true") == true);
  for (const char* text : {"nan", "inf", "1e999", "7x", "", "[1]"})
    CHECK(json_scalar(text) == text);
}

}  // namespace json_text_test
