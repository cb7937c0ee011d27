// What a value may be, in words.
#include "costmodel/config/key_text.hpp"

#include <doctest/doctest.h>

#include <array>

namespace key_text_test {

using namespace costmodel;

TEST_CASE("ranges have their unit, and words their order") {
  CHECK(whole_text({1, 1024}) == "1 to 1,024");
  CHECK(number_text(Dimension::time, 0, 1) == "0 to 1 s");
  CHECK(number_text(Dimension::count, 0.5, 10) == "0.5 to 10");
  constexpr std::array<std::string_view, 2> words{"none", "full"};
  CHECK(words_text(words) == "none, full");
  CHECK(words_text({}).empty());
}

}  // namespace key_text_test
