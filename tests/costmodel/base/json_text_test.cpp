// JSON is valid whatever its strings hold.
#include "costmodel/base/json_text.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

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

}  // namespace json_text_test
