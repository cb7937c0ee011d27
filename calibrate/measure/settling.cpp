#include "calibrate/measure/settling.hpp"

#include <algorithm>
#include <vector>

namespace calibrate {

using namespace costmodel;

bool settled(std::span<const double> times, std::size_t last, double apart) {
  if (times.size() < last) return false;
  const auto [least, most] = std::ranges::minmax(times.last(last));
  return most <= least * (1 + apart);
}

Settled settle(const std::function<Seconds()>& run, const Settling& rule, const Clock& clock) {
  std::vector<double> times;
  const Seconds begin = clock();
  for (;;) {
    times.push_back(run().value);
    const Seconds taken = clock() - begin;
    const bool agree = settled(times, rule.last, rule.apart);
    if ((agree && taken >= rule.least) || taken >= rule.most) return {taken, agree};
  }
}

}  // namespace calibrate
