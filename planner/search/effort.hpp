// How much a search may do. Work is counted, in stages looked at, so that a search without a time
// limit ends at the same plan on every machine and with any number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>

namespace planner {

// Called with the stages looked at since the last call; true ends the search.
using Spend = std::function<bool(std::uint64_t stages)>;

inline constexpr std::uint64_t any_effort = std::numeric_limits<std::uint64_t>::max();

// Pricing one takes about as long as looking at so many.
inline constexpr std::uint64_t effort_of_pricing = 32;

class Effort {
 public:
  // `expired` ends the search too, unless it is empty.
  Effort(std::uint64_t most, const std::function<bool()>& expired)
      : most_(most), expired_(&expired) {}

  bool spend(std::uint64_t stages) {
    spent_ += stages;
    stopped_ = stopped_ || (*expired_ && (*expired_)());
    over_ = over_ || spent_ > most_ || stopped_;
    return over_;
  }
  // What comes next would be too much.
  void give_up() { over_ = true; }
  bool over() const { return over_; }
  bool stopped() const { return stopped_; }  // by `expired`
  std::uint64_t spent() const { return spent_; }

 private:
  std::uint64_t most_, spent_ = 0;
  const std::function<bool()>* expired_;
  bool over_ = false, stopped_ = false;
};

}  // namespace planner
