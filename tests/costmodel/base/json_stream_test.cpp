#include "costmodel/base/json_stream.hpp"

#include <doctest/doctest.h>

#include <string>

#include "costmodel/base/error.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace json_stream_test {

using costmodel::JsonTokens;
using fixtures::contains;

namespace {

class Written : public JsonTokens {
 public:
  void begin(bool object) override { text_ += object ? '{' : '['; }
  void end() override { text_ += ')'; }
  void key(const std::string& name) override { text_ += name + ":"; }
  void text(const std::string& value) override { text_ += "'" + value + "'"; }
  void number(double value) override { text_ += std::to_string(static_cast<int>(value)) + ","; }
  void other() override { text_ += "?"; }
  std::string text_;
};

// The tokens of a text that comes in pieces of so many characters.
std::string tokens(std::string_view text, std::size_t piece = 3) {
  Written written;
  costmodel::read_json_stream(
      [&] {
        const std::string_view next = text.substr(0, piece);
        text.remove_prefix(next.size());
        return next;
      },
      "t.json", written);
  return written.text_;
}

std::string refused(std::string_view text) {
  return fixtures::config_error([&] { tokens(text, 1000); });
}

}  // namespace

TEST_CASE("tokens do not depend on where the pieces end") {
  constexpr std::string_view text = R"({"a": [1, 2, "x"], "b": {"c": null, "d": true}})";
  CHECK(tokens(text) == "{a:[1,2,'x')b:{c:?d:?))");
  for (std::size_t piece = 1; piece < 20; ++piece) CHECK(tokens(text, piece) == tokens(text));
}

TEST_CASE("a text that was cut short, is no JSON, too deep or too long is refused at its place") {
  CHECK(contains(refused("{\"a\": [1,\n 2"), "t.json:2:3: ends in the middle of a value"));
  CHECK(contains(refused("{\"a\": [1 2]}"), "is not JSON"));
  CHECK(contains(refused(""), "cut short"));
  CHECK(contains(refused(std::string(100, '[')), "deeper than 64 levels"));
  CHECK(contains(refused("[\"" + std::string(2 << 20, 'x') + "\"]"), "more than 1 MiB"));
  CHECK(contains(refused("[" + std::string(2 << 20, ' ') + "1]"), "more than 1 MiB"));
}

}  // namespace json_stream_test
