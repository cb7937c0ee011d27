// Texts in lower case.
#include "costmodel/base/letter_case.hpp"

#include <doctest/doctest.h>

namespace letter_case_test {

using costmodel::lower_case;

TEST_CASE("ASCII's letters change, every other byte stays") {
  CHECK(lower_case("NVIDIA H100 80GB_hbm3") == "nvidia h100 80gb_hbm3");
  CHECK(lower_case("").empty());
  CHECK(lower_case("@[`{") == "@[`{");      // the neighbours of A, Z, a and z
  CHECK(lower_case("GRÖSSE") == "grÖsse");  // two bytes of UTF-8
}

}  // namespace letter_case_test
