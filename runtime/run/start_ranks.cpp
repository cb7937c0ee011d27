#include "runtime/run/start_ranks.hpp"

#include <chrono>
#include <thread>

#include "costmodel/base/console.hpp"
#include "costmodel/base/interrupt.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "runtime/ranks/launch.hpp"
#include "runtime/ranks/mpi_transport.hpp"
#include "runtime/ranks/tcp_transport.hpp"
#include "runtime/ranks/thread_transport.hpp"
#include "runtime/run/agreement.hpp"
#include "runtime/training/stage_executor.hpp"

namespace runtime {

using namespace costmodel;

namespace {

// On rank 0 reports the fault that ends the run; then throws it on.
void tell_faults(bool speaks, EarlyEnd& end, const std::function<void()>& all) {
  try {
    all();
  } catch (const RunFault& fault) {
    if (speaks) end.tell(fault.what());
    throw;
  }
}

}  // namespace

void train_under_mpi(const RunRequest& request, const ParallelPlan& plan, EarlyEnd& end,
                     const std::function<void(Transport&)>& program) {
  if (const auto missing = mpi_missing(); !missing.empty()) throw RunFault(0, missing);
  const bool alone = !launched();
  if (alone && plan.devices() > 1)
    throw RunFault(0, wrong_world(plan.devices(), to_string(plan), 1));
  const bool speaks = alone || launched()->rank == 0;
  MpiOptions options{.patience = request.patience,
                     .beside = reduces_beside(request.scenario.training, plan)};
  if (speaks) options.on_fault = [&end](const std::string& cause) { end.tell(cause); };
  // MPI kills rank 0 when another rank has exited, so the others give it time to report. mpirun
  // kills one second after SIGTERM.
  const OnInterrupt on_interrupt([&end, speaks](int number) {
    if (speaks) {
      end.tell_signal(number);
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(700));
    }
    return AfterSignal::end;
  });
  if (run_mpi(options, program) != 0) throw RunFault(0, "MPI did not start");
}

void train_over_tcp(const RunRequest& request, const ParallelPlan&, EarlyEnd& end,
                    const std::function<void(Transport&)>& program) {
  const auto who = launched_by_torchrun();
  const bool speaks = !who || who->rank == 0;
  // torchrun kills all ranks when one has exited, perhaps before the others notice. A rank that
  // noticed it reports it; rank 0 reports the noted cause or else the signal. When all cores are
  // busy, the thread that notices may have to wait for one.
  const OnInterrupt on_interrupt([&end, speaks](int number) {
    if (speaks) {
      end.tell_signal(number, Seconds(0.4));
      return AfterSignal::end;
    }
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(700);
    const std::string cause = end.noted_cause(Seconds(0.7));
    if (!cause.empty()) print_message("shardplan run: " + cause);
    std::this_thread::sleep_until(until);
    return AfterSignal::end;
  });
  const TcpOptions options{.patience = request.patience,
                           .on_cause = [&end](const std::string& cause) { end.note_cause(cause); },
                           .on_fault =
                               [&end, speaks](const std::string& cause) {
                                 end.note_cause(cause);
                                 if (speaks) end.tell(cause);
                               }};
  tell_faults(speaks, end, [&] { run_tcp(options, program); });
}

void train_on_threads(const RunRequest& request, const ParallelPlan& plan, EarlyEnd& end,
                      const std::function<void(Transport&)>& program) {
  const OnInterrupt on_interrupt([&end](int number) {
    end.tell_signal(number);
    return AfterSignal::end;
  });
  tell_faults(true, end, [&] {
    run_ranks(static_cast<int>(plan.devices()), {.patience = request.patience}, program);
  });
}

void train_as_launched(const RunRequest& request, const ParallelPlan& plan, EarlyEnd& end,
                       const std::function<void(Transport&)>& program) {
  if (!one_of_several()) return train_on_threads(request, plan, end, program);
  (launched() ? train_under_mpi : train_over_tcp)(request, plan, end, program);
}

}  // namespace runtime
