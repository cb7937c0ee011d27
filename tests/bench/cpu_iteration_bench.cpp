// What the engine adds to its operators, and what all of it leaves of the products' own rate: a
// gpt model's iterations on one rank, every operator timed within, and after every product the
// same product alone. Paired like this both sides meet the same neighbours.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <functional>
#include <variant>
#include <vector>

#include "calibrate/measure/measurement.hpp"
#include "calibrate/measure/probe_model.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "runtime/cpu/gemm.hpp"
#include "runtime/devices/cpu_device.hpp"
#include "runtime/devices/device_wrapper.hpp"
#include "runtime/ranks/thread_transport.hpp"
#include "runtime/training/stage_executor.hpp"

namespace {

using costmodel::Pass;
using costmodel::Seconds;
using runtime::OpCall;

// The time within the device behind it, and of each product run once more by itself.
class Stopwatch : public runtime::DeviceAround {
 public:
  Stopwatch(runtime::Device& device, calibrate::Clock clock)
      : DeviceAround(device), clock_(std::move(clock)) {}

  // In operators; in those that are products; the products by themselves; all that those cost.
  Seconds within, products, alone, aside;

 private:
  Seconds timed(const std::function<void()>& work) const {
    const Seconds begin = clock_();
    work();
    return clock_() - begin;
  }
  void around(Work work, const OpCall& call) override {
    within += last_ = timed([&] { through(work, call); });
    again(call, pass_of(work));
  }

  // The products read and write other memory than the model's, in the same layout.
  void again(const OpCall& call, Pass pass) {
    const auto* op = std::get_if<costmodel::Linear>(&call.node.op);
    if (op == nullptr) return;
    const Seconds begin = clock_();
    runtime::cpu::Gemm gemm{.m = op->m, .n = op->n, .k = op->k};
    if (pass == Pass::input_gradient)
      gemm = {.m = op->m, .n = op->k, .k = op->n, .transpose_b = true};
    if (pass == Pass::weight_gradient)
      gemm = {.m = op->k, .n = op->n, .k = op->m, .transpose_a = true, .beta = 1};
    const auto most =
        static_cast<std::size_t>(std::max({op->m * op->n, op->m * op->k, op->k * op->n}));
    for (auto* values : {&a_, &b_, &c_})
      if (values->size() < most) values->assign(most, 1e-3F);
    products += last_;
    alone += timed([&] { runtime::cpu::gemm(gemm, a_, b_, c_); });
    std::fill(c_.begin(), c_.end(), 1e-3F);  // sums would grow without end
    aside += clock_() - begin;
  }

  calibrate::Clock clock_;
  Seconds last_;
  std::vector<float> a_, b_, c_;
};

// Counters: iteration_over_operators, whole iterations over the time within operators and the
// optimizer; rate_share, the products by themselves over the passes through the layers, which is
// what those reach of the BLAS's rate for the same shapes; product_share, the products within the
// layers over the same.
void iteration(benchmark::State& state) {
  calibrate::SmallModel model;
  model.hidden = state.range(0);
  model.heads = model.kv_heads = model.hidden / 64;
  model.ffn = 4 * model.hidden;
  model.sequence = state.range(1);
  const auto evaluator = calibrate::evaluator_of(model, {});
  const auto plan = calibrate::plan_of(model);
  runtime::ThreadWorld world(1, {});
  const calibrate::Clock clock = calibrate::thread_clock();
  runtime::CpuDevice device;
  Stopwatch watch(device, clock);
  runtime::StageExecutor executor(evaluator, plan, world.of(0), watch, {});
  Seconds all, passes, optimizer;
  std::int64_t number = 0;
  const auto iterate = [&] {
    const Seconds begin = clock();
    executor.begin_iteration(number++);
    const Seconds first = clock();
    executor.forward(0, 0);
    executor.backward(0, 0);
    executor.reduce_gradients();
    const Seconds step = clock();
    executor.step();
    const Seconds end = clock();
    all += end - begin;
    passes += step - first;
    optimizer += end - step;
  };
  iterate();
  all = passes = optimizer = watch.within = watch.products = watch.alone = watch.aside = Seconds(0);
  for (auto _ : state) iterate();
  state.SetLabel(runtime::cpu::gemm_provider());
  state.counters["iteration_over_operators"] =
      (all - watch.aside).value / (watch.within + optimizer).value;
  state.counters["rate_share"] = watch.alone.value / (passes - watch.aside).value;
  state.counters["product_share"] = watch.products.value / (passes - watch.aside).value;
}
BENCHMARK(iteration)
    ->Args({256, 128})
    ->Args({1024, 256})
    ->Args({1024, 1024})
    ->Args({2048, 512})
    ->Unit(benchmark::kMillisecond);

}  // namespace
