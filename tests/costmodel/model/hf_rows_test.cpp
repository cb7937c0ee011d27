// The rows of the register: each sets a key of a model.
#include "costmodel/model/hf_rows.hpp"

#include <doctest/doctest.h>

#include <sstream>
#include <string>

#include "costmodel/model/hf_families.hpp"
#include "costmodel/model/model_keys.hpp"

namespace hf_rows_test {

using namespace costmodel;

TEST_CASE("every row is of a key of a model") {
  for (const HfFamily& family : hf_families()) {
    for (const std::string_view rows : family.rows) {
      std::istringstream words{std::string(rows)};
      for (std::string word; words >> word;) {
        const std::size_t end = word.find_first_of("=:");
        if (end == std::string::npos) continue;
        CAPTURE(std::string(family.model_type));
        CAPTURE(word);
        CHECK(is_model_key(word.substr(0, end)));
      }
    }
  }
}

}  // namespace hf_rows_test
