#include "costmodel/base/json_stream.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>

#include "costmodel/base/error.hpp"

namespace costmodel {

namespace {

constexpr std::size_t longest_value = std::size_t{1} << 20;
constexpr int deepest = 64;

// The characters of all pieces, with the place of the last one that was read.
class Characters {
 public:
  Characters(const NextPiece& next, std::string file) : next_(next), file_(std::move(file)) {
    refill();
  }

  bool ended() const { return at_ == end_; }
  char current() const { return *at_; }
  void advance() {
    if (*at_ == '\n') {
      ++line_;
      column_ = 0;
    }
    ++column_;
    if (++at_ == end_) refill();
    if (++since_token_ > longest_value) {
      throw ConfigError(mark(), "has a value of more than 1 MiB",
                        "this is no profiler's trace, or one with the source of a program in it");
    }
  }
  void token() { since_token_ = 0; }
  Mark mark() const { return {file_, line_, column_}; }

 private:
  void refill() {
    const std::string_view piece = next_();
    at_ = piece.data();
    end_ = at_ + piece.size();
  }

  const NextPiece& next_;
  std::string file_;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  std::size_t since_token_ = 0;
  int line_ = 1, column_ = 1;
};

// As the library reads characters: equal to the default one at the end.
class Iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  Iterator() = default;
  explicit Iterator(Characters& all) : all_(&all) {}
  char operator*() const { return all_->current(); }
  Iterator& operator++() {
    all_->advance();
    return *this;
  }
  Iterator operator++(int) {
    const Iterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Iterator& other) const { return at_end() == other.at_end(); }
  bool operator!=(const Iterator& other) const { return !(*this == other); }

 private:
  bool at_end() const { return all_ == nullptr || all_->ended(); }
  Characters* all_ = nullptr;
};

class Handler {
 public:
  Handler(Characters& characters, JsonTokens& tokens) : characters_(characters), tokens_(tokens) {}

  bool null() { return other(); }
  bool boolean(bool) { return other(); }
  bool number_integer(std::int64_t value) { return number(static_cast<double>(value)); }
  bool number_unsigned(std::uint64_t value) { return number(static_cast<double>(value)); }
  bool number_float(double value, const std::string&) { return number(value); }
  bool string(std::string& value) {
    characters_.token();
    tokens_.text(value);
    return true;
  }
  bool binary(nlohmann::json::binary_t&) { return other(); }
  bool start_object(std::size_t) { return begin(true); }
  bool start_array(std::size_t) { return begin(false); }
  bool end_object() { return end(); }
  bool end_array() { return end(); }
  bool key(std::string& name) {
    characters_.token();
    tokens_.key(name);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) {
    if (characters_.ended()) {
      throw ConfigError(characters_.mark(), "ends in the middle of a value: it was cut short",
                        "copy or record it again, in full");
    }
    throw ConfigError(characters_.mark(), "is not JSON: it cannot be read from here on",
                      "name a trace as the profiler wrote it");
  }

 private:
  bool other() {
    characters_.token();
    tokens_.other();
    return true;
  }
  bool number(double value) {
    characters_.token();
    tokens_.number(std::isfinite(value) ? value : 0);
    return true;
  }
  bool begin(bool object) {
    if (++depth_ > deepest) {
      throw ConfigError(characters_.mark(), "values nest deeper than 64 levels",
                        "name a trace as the profiler wrote it");
    }
    characters_.token();
    tokens_.begin(object);
    return true;
  }
  bool end() {
    --depth_;
    characters_.token();
    tokens_.end();
    return true;
  }

  Characters& characters_;
  JsonTokens& tokens_;
  int depth_ = 0;
};

}  // namespace

void read_json_stream(const NextPiece& next, const std::string& file, JsonTokens& tokens) {
  Characters characters(next, file);
  Handler handler(characters, tokens);
  nlohmann::json::sax_parse(Iterator(characters), Iterator(), &handler);
}

}  // namespace costmodel
