#include "costmodel/base/fingerprint.hpp"

#include <doctest/doctest.h>

namespace fingerprint_test {

using costmodel::fingerprint;

TEST_CASE("fingerprints are FNV-1a, 64 bits, in pieces or at once") {
  CHECK(fingerprint("") == "cbf29ce484222325");
  CHECK(fingerprint("a") == "af63dc4c8601ec8c");  // Fowler, Noll, Vo: the published test vector
  costmodel::Fingerprint print;
  print.add("ab");
  print.add("c");
  CHECK(print.text() == fingerprint("abc"));
}

}  // namespace fingerprint_test
