#include "costmodel/estimate/launch_queue.hpp"

namespace costmodel {

// Forward ends and backward begins with the loss, whose few large kernels are where most of a lead
// comes from: forward's waits are before its gains, backward's after them.
QueueLead queue_lead(const QueuedWork& work) {
  const bool meets = work.after_wait >= Seconds(0);
  QueueLead sum;
  for (std::int64_t done = 0; done < work.micro_batches; ++done) {
    const Seconds before = sum.left;
    const Seconds ahead = meets ? Seconds(0) : min(work.forward.waited, before);
    const Seconds at_loss = meets ? work.after_wait : before - ahead + work.forward.gained;
    const Seconds spared = min(work.backward.waited, at_loss + work.backward.gained);
    sum.left = at_loss + work.backward.gained - spared;
    sum.forward += ahead;
    sum.backward += spared;
    // From here on every micro-batch is as this one.
    if (sum.left != before && (ahead < work.forward.waited || spared < work.backward.waited))
      continue;
    const auto others = static_cast<double>(work.micro_batches - done - 1);
    sum.forward += ahead * others;
    sum.backward += spared * others;
    if (!meets) sum.left += (sum.left - before) * others;
    break;
  }
  const auto m = static_cast<double>(work.micro_batches);
  return {sum.forward / m, sum.backward / m, sum.left};
}

}  // namespace costmodel
