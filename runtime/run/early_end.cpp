#include "runtime/run/early_end.hpp"

#include <exception>
#include <utility>

#include "costmodel/base/console.hpp"
#include "costmodel/base/error.hpp"
#include "costmodel/base/interrupt.hpp"
#include "runtime/training/loss_scale.hpp"

namespace runtime {

using namespace costmodel;

void EarlyEnd::add(std::vector<RankMeasurement> iteration) {
  progress_.add(std::move(iteration));
  if (!request_.so_far || Clock::now() < next_) return;
  const std::scoped_lock lock(mutex_);
  if (told_) return;
  try {
    request_.so_far(partial("still running when this was written"));
  } catch (const ConfigError& fault) {  // the report at the end may find a place
    if (!std::exchange(warned_, true))
      print_message(std::string("shardplan run: ") + fault.what() + " (the run goes on)");
  }
  next_ = Clock::now() + std::chrono::seconds(1);
}

void EarlyEnd::note(std::string text) {
  const std::scoped_lock lock(mutex_);
  if (!text.empty()) found_.push_back(std::move(text));
}

RunResult EarlyEnd::result() const {
  RunResult result = begun_;
  result.notes.insert(result.notes.end(), found_.begin(), found_.end());
  const auto ranks = progress_.so_far();
  if (ranks.empty()) return result;
  const auto& t = request_.scenario.training;
  result.measured = summarise(ranks, result.plan, t.global_batch * t.sequence);
  result.iterations = static_cast<int>(result.measured.loss.size());
  const std::string warning = loss_warning(result.measured.loss);
  if (!warning.empty()) result.notes.push_back(warning);
  const std::string scaling = scaling_note(result.measured.loss_scale, result.measured.skipped);
  if (!scaling.empty()) result.notes.push_back(scaling);
  return result;
}

void EarlyEnd::tell(const std::string& cause) {
  const std::scoped_lock lock(mutex_);
  if (told_) return;
  told_ = true;
  if (!request_.ended_early) return;
  try {
    request_.ended_early(partial(cause));
  } catch (const std::exception& fault) {  // no caller could catch it, and the run ends anyway
    print_message(std::string("shardplan run: what was seen cannot be reported: ") + fault.what());
  }
}

void EarlyEnd::note_cause(const std::string& cause) {
  {
    const std::scoped_lock lock(cause_mutex_);
    if (cause_.empty()) cause_ = cause;
  }
  cause_known_.notify_all();
}

std::string EarlyEnd::noted_cause(Seconds moment) {
  std::unique_lock lock(cause_mutex_);
  cause_known_.wait_for(lock, std::chrono::duration<double>(moment.value),
                        [&] { return !cause_.empty(); });
  return cause_;
}

void EarlyEnd::tell_signal(int number, Seconds moment) {
  std::string cause = noted_cause(moment);
  if (cause.empty()) cause = interrupted_text(number);
  print_message("shardplan run: " + cause);
  tell(cause);
}

RunResult EarlyEnd::partial(const std::string& cause) const {
  RunResult partial = result();
  partial.interrupted = true;
  partial.cause = cause;
  return partial;
}

}  // namespace runtime
