#include "planner/commands/init_command.hpp"

#include <doctest/doctest.h>

#include "tests/costmodel/support/fixtures.hpp"
#include "tests/golden.hpp"
#include "tests/run_program.hpp"

namespace init_command_test {

using fixtures::contains;
using program::run;
using program::Run;
using program::Scratch;
using program::words_of;

TEST_CASE("what is written loads, is searched and is evaluated") {
  const Scratch scratch;
  const Run written = run(
      words_of("init my.yaml --model llama-3-8b --gpus 16xh100 --batch 64 --sequence 8k"), scratch);
  CHECK(written.status == 0);
  CHECK(written.out == "");
  CHECK(contains(written.err, "my.yaml is written: shardplan plan my.yaml"));
  const std::string text = scratch.read("my.yaml");
  for (const char* part : {"model: llama-3-8b", "base: dgx-h100", "devices: 16", "global_batch: 64",
                           "sequence: 8k", "# sequences of an iteration", "plan: auto"})
    CHECK(contains(text, part));
  CHECK(run(words_of("evaluate my.yaml"), scratch).status == 0);
  const Run planned = run(words_of("plan my.yaml --strategy grid"), scratch);
  CHECK(planned.status == 0);
  CHECK(contains(planned.out, "16 x NVIDIA H100"));
}

TEST_CASE("a model and devices may be operands, and without a file it goes to standard output") {
  const Scratch scratch;
  const Run text = run(words_of("init llama-3-70b 64xh100"), scratch);
  CHECK(text.status == 0);
  CHECK(contains(text.out, "model: llama-3-70b"));
  CHECK(contains(text.out, "devices: 64"));
  for (const auto& line : golden::lines_of(text.out)) CHECK(line.size() <= 100);
  CHECK(run(words_of("init"), scratch).status == 0);  // not a terminal: nothing is asked
  CHECK(contains(run(words_of("init llama-3-70b llama-3-8b"), scratch).err, "name one model"));
}

TEST_CASE("a file that exists is not overwritten") {
  const Scratch scratch;
  scratch.write("my.yaml", "precious\n");
  for (const std::string command : {"init my.yaml", "init --out my.yaml", "init -o my.yaml"}) {
    const Run refused = run(words_of(command), scratch);
    CHECK(refused.status == 2);
    CHECK(contains(refused.err, "my.yaml: is there already"));
    CHECK(scratch.read("my.yaml") == "precious\n");
  }
}

}  // namespace init_command_test
