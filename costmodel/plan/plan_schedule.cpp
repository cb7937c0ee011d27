#include "costmodel/plan/plan_schedule.hpp"

#include "costmodel/base/error.hpp"

namespace costmodel {

Schedule schedule_of(const ParallelPlan& plan, std::int64_t micro_batches,
                     const PipelineTimes& times, const HeldShares& shares) {
  if (plan.listed == nullptr) {
    return generate(plan.schedule, plan.pp, plan.vpp, static_cast<int>(micro_batches), times,
                    shares, plan.choices);
  }
  SHARDPLAN_CHECK(plan.listed->schedule.micro_batches == micro_batches);
  return plan.listed->schedule;
}

bool in_whole_rounds(const ParallelPlan& plan) {
  return plan.listed != nullptr ? plan.listed->whole_rounds : row_of(plan.schedule).whole_rounds;
}

}  // namespace costmodel
