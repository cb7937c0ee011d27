// torchtitan's Python configurations as fields: assignments, keyword arguments, and what is
// neither.
#include "planner/frameworks/python_settings.hpp"

#include <doctest/doctest.h>

#include <string>

#include "costmodel/base/error.hpp"

namespace python_settings_test {

using planner::read_python_settings;

namespace {

std::string last(const std::vector<planner::SetField>& fields, const std::string& name) {
  std::string value = "absent";
  for (const auto& set : fields) {
    if (set.field != name) continue;
    value = set.values.empty() ? "?" + set.unknown : std::string();
    for (const auto& one : set.values) value += (value.empty() ? "" : "|") + one;
  }
  return value;
}

}  // namespace

TEST_CASE("assignments and keyword arguments") {
  const auto fields = read_python_settings(
      "from torchtitan.models.common import x\n"
      "from torchtitan.models.llama3 import build_model_config\n"
      "config = llama3_8b(seq_len=4096)\n"
      "config.model = build_model_config('70B')  # \"405B\"\n"
      "config.training.steps = 2 * 3 * 7\n"
      "config.parallelism = ParallelismConfig(\n"
      "    tensor_parallel_degree=8, enable_sequence_parallel=False,\n"
      "    pipeline_parallel_module_fqns_per_model_part=[\n"
      "        [\"a\", \"b\"],\n        [\"c\"],\n    ],\n"
      "    pipeline_parallel_degree=len(stages),\n)\n"
      "config.compile = CompileConfig(enable_async_tensor_parallel=True)\n"
      "config.activation_checkpoint = None\n"
      "if config.training.steps == 3:\n    pass\n",
      "x.py");
  CHECK(last(fields, "model.name") == "llama3");
  CHECK(last(fields, "model.flavor") == "70B");
  CHECK(last(fields, "training.steps") == "42");
  CHECK(last(fields, "parallelism") == "absent");
  CHECK(last(fields, "parallelism.tensor_parallel_degree") == "8");
  CHECK(last(fields, "parallelism.enable_sequence_parallel") == "false");
  CHECK(last(fields, "parallelism.pipeline_parallel_module_fqns_per_model_part") == "a b|c");
  CHECK(last(fields, "parallelism.pipeline_parallel_degree") == "?len");
  CHECK(last(fields, "compile") == "CompileConfig");
  CHECK(last(fields, "compile.enable_async_tensor_parallel") == "true");
  CHECK(last(fields, "activation_checkpoint") == "null");
}

TEST_CASE("a model's converters are those of the last call that builds it") {
  const std::string first =
      "spec = model_registry(\"8B\", converters=[A.B.LoRAConverter.Config(rank=8)], x=3)\n";
  auto fields = read_python_settings(first, "a/llama3/config_registry.py");
  CHECK(last(fields, "model.name") == "llama3");
  CHECK(last(fields, "model.converters") == "LoRAConverter");
  CHECK(last(fields, "model.x") == "3");
  fields = read_python_settings(first + "c.model_spec = model_registry(\"70B\")\n",
                                "a/llama3/config_registry.py");
  CHECK(last(fields, "model.flavor") == "70B");
  CHECK(last(fields, "model.converters") == "absent");
  // Of no call that builds a model.
  fields = read_python_settings("x = f(converters=[Float8LinearConverter.Config(fqns=[\"a\"])])\n",
                                "x.py");
  CHECK(last(fields, "model.converters") == "absent");
}

TEST_CASE("quotes and brackets that are not closed are refused where they open") {
  CHECK_THROWS_WITH_AS(read_python_settings("x = \"a\ny = 1\n", "x.py"),
                       "x.py:1:5: the quote is not closed; close it", costmodel::ConfigError);
  CHECK_THROWS_WITH_AS(read_python_settings("x = f(1,\n", "x.py"), doctest::Contains("x.py:1:5"),
                       costmodel::ConfigError);
  CHECK_THROWS_WITH_AS(read_python_settings("x = 1)\n", "x.py"), doctest::Contains("x.py:1:6"),
                       costmodel::ConfigError);
  CHECK_THROWS_WITH_AS(read_python_settings(std::string(100, '('), "x.py"),
                       doctest::Contains("nested too deeply"), costmodel::ConfigError);
}

}  // namespace python_settings_test
