// One function of a Python file of recipes, as text.
#include "planner/exchange/python_recipe.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "costmodel/base/error.hpp"

using planner::python_recipe;

namespace {

const std::string two =
    "from torchtitan.models.llama3 import model_registry\n"
    "\n"
    "def small(tp: int = 2, *, name: str = \"x\"):\n"
    "    return Config(model_registry(\"8B\"), tensor_parallel_degree=tp)\n"
    "\n"
    "\n"
    "def big():\n"
    "    config = small()\n"
    "    config.parallelism.tensor_parallel_degree = 8\n"
    "    return config\n";

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("one function, with what it calls before it and its defaults in place") {
  const std::string small = python_recipe(two, "r.py", "small");
  CHECK(holds(small, "tensor_parallel_degree=2)"));
  CHECK_FALSE(holds(small, "degree = 8"));
  CHECK(holds(small, "from torchtitan"));
  const std::string big = python_recipe(two, "r.py", "big");
  CHECK(big.find("degree=2)") < big.find("degree = 8"));
  // Places are those of the file where nothing of it is called.
  CHECK(std::count(small.begin(), small.end(), '\n') == std::count(two.begin(), two.end(), '\n'));
  CHECK(python_recipe(two, "r.py", "") == big);  // the only one that no other calls
}

TEST_CASE("several recipes want a name, and a name must be there") {
  const std::string three = two + "def huge():\n    config.train.micro_batch_size = 1\n";
  CHECK_THROWS_WITH_AS(python_recipe(three, "r.py", ""),
                       "r.py: has several recipes; name one with --recipe: small, big, huge",
                       costmodel::ConfigError);
  CHECK_THROWS_WITH_AS(python_recipe(three, "r.py", "tiny"),
                       "r.py: has no recipe 'tiny'; its recipes: small, big, huge",
                       costmodel::ConfigError);
  CHECK(holds(python_recipe(three, "r.py", "huge"), "micro_batch_size = 1"));
  CHECK(python_recipe("x = 1\n", "r.py", "") == "x = 1\n");
}

TEST_CASE("a function after the one that calls it, and two that call each other") {
  const std::string late =
      "def first():\n    c = second()\n    c.batch_size = 2\n"
      "def second():\n    c.batch_size = 1\n";
  const std::string text = python_recipe(late, "r.py", "first");
  CHECK(text.find("batch_size = 1") < text.find("batch_size = 2"));
  const std::string circle =
      "def a():\n    b()\n    c.batch_size = 1\ndef b():\n    a()\n    c.batch_size = 2\n";
  CHECK(holds(python_recipe(circle, "r.py", "a"), "batch_size = 1"));
  CHECK(python_recipe("def a(\n", "r.py", "") == "def a(\n");
}

TEST_CASE("a default stands for its parameter alone") {
  const std::string text = python_recipe(
      "def f(\n    seq: int = 4096,\n    cb: object = make(),\n) -> None:\n"
      "    r.data.seq = seq\n    g(seq=seq, other=seq_len)\n    r.micro_batch_size = 1\n",
      "r.py", "f");
  CHECK(holds(text, "r.data.seq = 4096"));
  CHECK(holds(text, "g(seq=4096, other=seq_len)"));
}

TEST_CASE("a call's arguments, in the place of the call; variables and module constants") {
  const std::string text = python_recipe(
      "SEQ = 8192\n"
      "def _common(tp: int = 1, pp: int = 1):\n    cfg.tensor_parallel_size = tp\n"
      "    cfg.pipeline_parallel_size = pp\n"
      "def _tune(cfg):\n    cfg.tensor_parallel_size = 8\n"
      "def mine():\n    batch = 128\n    cfg = _common(\n        4,  # ranks\n        pp=2)\n"
      "    cfg.seq_length = SEQ\n    cfg.global_batch_size = batch\n    _tune(cfg)\n",
      "r.py", "");
  const auto at = [&](const char* line) {
    CHECK_MESSAGE(holds(text, line), line);
    return text.find(line);
  };
  CHECK(at("cfg.tensor_parallel_size = 4") < at("cfg.seq_length = 8192"));
  CHECK(at("cfg.pipeline_parallel_size = 2") < at("cfg.global_batch_size = 128"));
  CHECK(at("cfg.global_batch_size = 128") < at("cfg.tensor_parallel_size = 8"));
}

TEST_CASE("bodies on one line, coroutines, names that stand twice, brackets in comments") {
  CHECK(holds(python_recipe("def a(): c.batch_size = 2\n", "r.py", "a"), "c.batch_size = 2"));
  CHECK_THROWS_WITH_AS(
      python_recipe("async def a():\n    c.batch_size = 2\nasync def b():\n    c.batch_size = 4\n",
                    "r.py", ""),
      "r.py: has several recipes; name one with --recipe: a, b", costmodel::ConfigError);
  const std::string twice = "def a():\n    c.batch_size = 2\ndef a():\n    c.batch_size = 4\n";
  CHECK(holds(python_recipe(twice, "r.py", "a"), "batch_size = 4"));
  CHECK_FALSE(holds(python_recipe(twice, "r.py", "a"), "batch_size = 2"));
  const std::string odd = "def a(x=\"(\",  # )\n      y=2):\n    c.batch_size = y\n";
  CHECK(holds(python_recipe(odd, "r.py", "a"), "batch_size = 2"));
}

TEST_CASE("what a call leaves open is not a default, and calls without end do end") {
  const std::string open = python_recipe(
      "def f(gbs=512):\n    c.global_batch_size = gbs\ndef g(n):\n    f(gbs=n)\n", "r.py", "g");
  CHECK(holds(open, "c.global_batch_size = gbs"));
  std::string many = "def f0():\n    c.batch_size = 1\n";
  for (int i = 1; i < 40; ++i)
    many += "def f" + std::to_string(i) + "():\n    f" + std::to_string(i - 1) + "()\n    f" +
            std::to_string(i - 1) + "()\n";
  CHECK(holds(python_recipe(many, "r.py", "f39"), "()"));
}
