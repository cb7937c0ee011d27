#include "costmodel/ending.hpp"

namespace costmodel {

Seconds reduced(Seconds end, const PlanCost& c, std::size_t rank) {
  end += c.gradient_exposed[rank];
  if (c.sums_table(rank)) end += c.embedding_reduce;
  return end;
}

namespace {

// No rank waits for another at the gradient norm (Qi et al. 2024, section 4): each starts its next
// iteration when its own has ended, so that iterations follow one another at the longest rank's
// time from first start to end.
Ending ending_apart(const PlanCost& c, const SimulationResult& run) {
  Ending end;
  Seconds longest(-1);
  for (std::size_t r = 0; r < run.finish.size(); ++r) {
    const Seconds busy = reduced(run.finish[r] - run.begin[r], c, r);
    const Seconds own = busy + c.optimizer[r] + c.gather_exposed[r];
    if (own <= longest) continue;
    longest = own;
    end.meeting = busy;
    end.critical = r;
    end.optimizer = c.optimizer[r];
    end.gather = c.gather_exposed[r];
  }
  return end;
}

// All ranks meet at the gradient norm, then step, then gather parameters.
Ending ending_together(const PlanCost& c, const SimulationResult& run) {
  Ending end;
  end.meeting = Seconds(-1);
  for (std::size_t r = 0; r < run.finish.size(); ++r) {
    const Seconds done = reduced(run.finish[r], c, r);
    if (done > end.meeting) {
      end.meeting = done;
      end.critical = r;
    }
    end.optimizer = max(end.optimizer, c.optimizer[r]);
    end.gather = max(end.gather, c.gather_exposed[r]);
  }
  return end;
}

}  // namespace

Ending ending(const PlanCost& c, const SimulationResult& run, const EndTerms& terms) {
  Ending end = terms.apart ? ending_apart(c, run) : ending_together(c, run);
  const Seconds even = end.meeting + end.optimizer + end.gather + terms.host;
  end.waiting = even * (terms.straggler - 1);
  end.iteration = even + end.waiting;
  return end;
}

}  // namespace costmodel
