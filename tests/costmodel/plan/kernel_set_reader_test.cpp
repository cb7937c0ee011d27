// Every shipped set of kernels, and what is refused.
#include "costmodel/plan/kernel_set_reader.hpp"

#include <doctest/doctest.h>

#include "costmodel/base/error.hpp"
#include "costmodel/config/search_path.hpp"
#include "costmodel/config/yaml.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace kernel_set_reader_test {

using namespace costmodel;

TEST_CASE("every file of configs/kernels loads, names operators, and a misspelt one is refused") {
  const auto names = config_names(fixtures::configs(), "kernels");
  CHECK(names.size() >= 4);
  for (const auto& name : names) {
    CAPTURE(name);
    const KernelSet set = read_kernel_set(
        resolve_config(fixtures::configs(), "kernels", scalar_value(name)).value, name);
    CHECK(set.name == name);
    CHECK(set.find(KernelOp::rmsnorm, true) != nullptr);
    CHECK(set.find(KernelOp::cross_entropy, false) != nullptr);
  }
  CHECK_THROWS_WITH_AS(
      read_kernel_set(parse_yaml("{sources: x, operators: {rms_norm: {}}}", "f.yaml"), "f"),
      doctest::Contains("rmsnorm"), ConfigError);
}

TEST_CASE("a set over another keeps what it does not write") {
  const auto set = [](const char* name) {
    return read_kernel_set(resolve_config(fixtures::configs(), "kernels", scalar_value(name)).value,
                           name);
  };
  const KernelSet eager = set("pytorch-eager"), compiled = set("pytorch-compiled");
  CHECK(compiled.find(KernelOp::optimizer, true)->wide ==
        eager.find(KernelOp::optimizer, true)->wide);
  CHECK(compiled.find(KernelOp::gated_activation, true)->narrow <
        eager.find(KernelOp::gated_activation, true)->narrow);
  CHECK(compiled.find(KernelOp::compiled_cross_entropy, true) != nullptr);
  CHECK(eager.find(KernelOp::compiled_cross_entropy, true) == nullptr);
}

}  // namespace kernel_set_reader_test
