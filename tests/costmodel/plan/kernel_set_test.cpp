#include "costmodel/plan/kernel_set.hpp"

#include <doctest/doctest.h>

#include "costmodel/plan/stack_spec.hpp"

namespace kernel_set_test {

using namespace costmodel;

TEST_CASE("a pass moves its elements in both widths, and those of its source") {
  const KernelPass pass{2, 1, 0.5, 3, 1, 0.8};
  CHECK(pass.bytes(100, 0, 2) == 100 * (2 * 2 + 1 * 4));
  CHECK(pass.bytes(100, 10, 2) == 100 * (2 * 2 + 1 * 4) + 10 * (0.5 * 2 + 3 * 4));
}

TEST_CASE("a stack without a set for compiled models uses the one for others") {
  StackKernels kernels;
  CHECK(kernels.used(false, false).empty());
  kernels.eager.name = "eager";
  CHECK(kernels.used(true, false).name == "eager");
  CHECK(kernels.used(false, true).name == "eager");
  kernels.adapters.name = "adapters";
  kernels.compiled.name = "compiled";
  CHECK(kernels.used(false, true).name == "adapters");
  CHECK(kernels.used(true, true).name == "compiled");
}

}  // namespace kernel_set_test
