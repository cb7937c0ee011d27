// A user's JSON that is too large to hold, token by token: bounded in depth and in the length of a
// value.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace costmodel {

// What takes the tokens, in their order.
class JsonTokens {
 public:
  virtual ~JsonTokens() = default;
  virtual void begin(bool object) = 0;  // an object or an array
  virtual void end() = 0;
  virtual void key(const std::string& name) = 0;
  virtual void text(const std::string& value) = 0;
  virtual void number(double value) = 0;
  virtual void other() = 0;  // true, false, null
};

// The next piece of the text, valid until the next call; empty at the end.
using NextPiece = std::function<std::string_view()>;

// Reads all of it. Throws ConfigError, with line and column in `file`, where the text is not JSON,
// where it ends too early, nests deeper than 64 levels, or has a value of more than 1 MiB.
void read_json_stream(const NextPiece& next, const std::string& file, JsonTokens& tokens);

}  // namespace costmodel
