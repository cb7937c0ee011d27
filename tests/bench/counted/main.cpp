// counted CASE TIMES: performs a case of planning_cases.hpp so often, and prints the processor time
// of one in seconds. tests/bench/speed counts its instructions.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "tests/bench/planning_cases.hpp"

namespace {

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class Case>
int perform(Case what, long times) {
  double sum = 0;  // so that nothing is left out
  const double start = processor_seconds();
  for (long i = 0; i < times; ++i) sum += what();
  std::printf("%.9g\n", (processor_seconds() - start) / static_cast<double>(times));
  return sum > 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc == 3 ? argv[1] : "";
  const long times = argc == 3 ? std::atol(argv[2]) : 0;
  if (times < 1) return 2;
  if (name == "evaluate") return perform(planning_cases::Evaluation(1), times);
  if (name == "evaluate-interleaved") return perform(planning_cases::Evaluation(3), times);
  if (name == "simulate") return perform(planning_cases::Simulation(8, 64), times);
  if (name == "search") {
    const planning_cases::Search search("gpt3-175b", 4096);
    return perform([&] { return search().lower_bound.value; }, times);
  }
  return 2;
}
