// Frameworks: every shipped one, and overriding what overlaps.
#include "costmodel/plan/stack_spec.hpp"

#include <doctest/doctest.h>

#include "costmodel/config/search_path.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/plan/stack_reader.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace stack_spec_test {

using namespace costmodel;

TEST_CASE("every stack loads and says what it is") {
  const auto names = config_names(fixtures::configs(), "stacks");
  CHECK(names.size() >= 21);
  for (const auto& name : names) {
    CAPTURE(name);
    const ResolvedConfig found = resolve_config(fixtures::configs(), "stacks", scalar_value(name));
    const StackSpec stack = read_stack(found.value, found.name);
    CHECK(stack.name == name);
    CHECK_FALSE(stack.framework.empty());
    CHECK(found.value.find("version") != nullptr);
    CHECK(stack.memory.fragmentation >= 0);
    // Our own runtime counts its tensors alone; others hold contexts and workspaces too.
    CHECK((stack.memory.context.value > 0) == (stack.framework != "shardplan"));
    CHECK((found.value.find("sources") != nullptr || found.value.find("source") != nullptr));
    const Value* memory = found.value.find("memory");
    REQUIRE(memory != nullptr);
    CHECK(memory->find("source") != nullptr);
  }
}

TEST_CASE("what the papers say of their frameworks") {
  const auto stack = [](const char* name) {
    const ResolvedConfig found = resolve_config(fixtures::configs(), "stacks", scalar_value(name));
    return read_stack(found.value, found.name);
  };
  CHECK(stack("megatron-2021").kernels.attention == AttentionKernel::unfused);
  CHECK(stack("megatron-2021").collectives.scatter_gather);
  CHECK(stack("megatron-core-2026").kernels.attention == AttentionKernel::flash);
  CHECK(stack("deepspeed-2021").offers.max_zero == 3);
  CHECK(stack("megatron-2021").offers.max_zero == 0);
}

TEST_CASE("single keys of the overlap are overridden") {
  Overlap base;
  base.pp_overlap = true;
  const auto read = [&](const char* yaml) {
    Overlap overlap = base;
    read_map(parse_yaml(yaml, "f.yaml"), "overlap", overlap_keys(), overlap);
    return overlap;
  };
  CHECK(read("{}").pp_overlap);
  CHECK_FALSE(read("{pp_overlap: false}").pp_overlap);
  const Overlap both = read("{dp_overlap: true}");
  CHECK(both.overlap_grad_reduce);
  CHECK(both.overlap_param_gather);
  CHECK(both.pp_overlap);
  CHECK_FALSE(read("{dp_overlap: true, overlap_param_gather: false}").overlap_param_gather);
  CHECK(fixtures::contains(fixtures::config_error([&] { read("{tp_overlap: true}"); }),
                           "f.yaml:1:2: overlap has no key"));
}

}  // namespace stack_spec_test
