// Flags of `shardplan calibrate --backend cpu` that cannot be, and what is said of them. Nothing is
// measured here.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "calibrate/commands/cpu_tasks.hpp"
#include "tests/run_program.hpp"

namespace cpu_flags_test {

using program::run;
using program::Scratch;

namespace {

std::string fault(const std::vector<std::string>& words) {
  const Scratch scratch;
  const auto done = run(words, scratch);
  CHECK(done.status == 2);
  CHECK(done.out == "");
  return done.err;
}

bool holds(const std::string& text, const char* words) {
  return text.find(words) != std::string::npos;
}

const std::vector<std::string> cpu{"calibrate", "--backend", "cpu"};

std::string cpu_fault(std::vector<std::string> more) {
  more.insert(more.begin(), cpu.begin(), cpu.end());
  return fault(more);
}

}  // namespace

TEST_CASE("a GPU that cannot be measured is missed in one sentence, and nothing is written") {
  const Scratch scratch;
  const auto done =
      run({"calibrate", "--backend", "cuda", "--out", "a.yaml", "--quick", "--minutes", "0.01"},
          scratch, std::chrono::seconds(100));
  if (done.status == 0) return;  // it could
  CHECK(done.status == 4);
  CHECK(done.err.starts_with("shardplan calibrate: "));
  CHECK(holds(done.err, "CUDA"));
  CHECK(done.err.find('\n') == done.err.size() - 1);
  CHECK(!std::filesystem::exists(scratch.path() / "a.yaml"));
}

TEST_CASE("bad flags") {
  CHECK(holds(cpu_fault({}), "write --out FILE"));
  CHECK(holds(cpu_fault({"--out", "a.yaml", "--minutes", "0"}), "above zero"));
  CHECK(holds(cpu_fault({"--out", "a.yaml", "--minutes", "long"}), "minutes"));
  CHECK(holds(cpu_fault({"--out", "a.yaml", "--quik"}), "did you mean '--quick'"));
  CHECK(holds(cpu_fault({"--check", "none.yaml"}), "no file 'none.yaml'"));
  CHECK(holds(cpu_fault({"--compare", "no-such-scenario"}), "no scenario of that name"));
  CHECK(holds(fault({"calibrate", "--backend", "tpu"}), "choose cpu or cuda"));
  CHECK(holds(fault({"calibrate", "--backend", "cuda"}), "write --out FILE"));
  CHECK(holds(fault({"calibrate", "--backend", "cuda", "--check", "a.yaml"}), "of --backend cpu"));
  CHECK(holds(fault({"calibrate", "--check", "a.yaml"}), "is a flag of --backend cpu"));
}

TEST_CASE("a run without its profile says how to make one") {
  const auto said = fault({"run", "tiny-gpt-cpu", "--calibrated", "mine.yaml"});
  CHECK(holds(said, "first run shardplan calibrate --backend cpu --out mine.yaml"));
}

TEST_CASE("a profile that is no device's is refused") {
  const Scratch scratch;
  scratch.write("mine.yaml", "title: nothing\n");
  const auto done = run({"run", "tiny-gpt-cpu", "--calibrated", "mine.yaml"}, scratch);
  CHECK(done.status == 2);
  CHECK(holds(done.err, "peak_flops_per_s"));
}

TEST_CASE("no model is both measured and held out") {
  CHECK(calibrate::held_out_models().size() == 20);
  for (const bool quick : {false, true}) {
    for (const auto& probed : calibrate::probed_models(quick))
      for (const auto& held_out : calibrate::held_out_models())
        CHECK(probed.name() != held_out.name());
  }
}

TEST_CASE("tasks have names of their own, and later rounds repeat the first") {
  const auto tasks = calibrate::cpu_tasks(true, 2, {.count = 2});
  std::size_t first = 0;
  for (const auto& task : tasks) {
    first += task.repeated ? 0 : 1;
    std::size_t same = 0;
    for (const auto& other : tasks) same += other.name == task.name ? 1 : 0;
    CHECK(same == 1);
  }
  CHECK(tasks.front().name == "pace");  // before all that is brought to it, and once
  CHECK(tasks.size() == 2 * first - 1);
}

}  // namespace cpu_flags_test
