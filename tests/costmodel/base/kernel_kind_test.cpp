#include "costmodel/base/kernel_kind.hpp"

#include <doctest/doctest.h>

#include <set>

namespace kernel_kind_test {

TEST_CASE("each kind has a name and a key of its own") {
  const std::set<std::string_view> names(costmodel::kernel_kind_names.begin(),
                                         costmodel::kernel_kind_names.end()),
      keys(costmodel::kernel_kind_keys.begin(), costmodel::kernel_kind_keys.end());
  CHECK(names.size() == costmodel::kernel_kind_count);
  CHECK(keys.size() == costmodel::kernel_kind_count);
  CHECK(static_cast<std::size_t>(costmodel::KernelKind::indexing) + 1 ==
        costmodel::kernel_kind_count);
}

}  // namespace kernel_kind_test
