#include "runtime/run/backends.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "costmodel/base/error.hpp"
#include "runtime/ranks/launch.hpp"
#include "runtime/run/cpu_backend.hpp"
#include "runtime/run/cuda_backend.hpp"
#include "runtime/run/emulated_run.hpp"
#include "runtime/run/run_command.hpp"
#include "runtime/run/start_ranks.hpp"

namespace runtime {

using namespace costmodel;

namespace {

Precision on_cpus(Precision) { return Precision::fp32; }

Precision on_gpus(Precision said) {
  const bool has = said == Precision::fp16 || said == Precision::fp8 || said == Precision::fp32;
  return has ? said : Precision::bf16;
}

std::vector<int> all_ranks(const ParallelPlan& plan) {
  std::vector<int> ranks(static_cast<std::size_t>(plan.devices()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::vector<int> ranks_started_here(const ParallelPlan&) { return ranks_here(); }

constexpr std::array backend_rows{
    Backend{.name = "threads",
            .help = "ranks of this process compute",
            .not_under_torchrun = "--backend threads runs all ranks in one process",
            .perform = train_plan,
            .computed_in = on_cpus,
            .devices = cpu_backend,
            .start = train_on_threads,
            .ranks_of_machine = all_ranks},
    Backend{.name = "mpi",
            .help = "this process is one rank of mpirun's or srun's",
            .not_under_torchrun = "--backend mpi wants ranks that mpirun or srun started",
            .perform = train_plan,
            .computed_in = on_cpus,
            .devices = cpu_backend,
            .start = train_under_mpi,
            .ranks_of_machine = ranks_started_here},
    Backend{.name = "tcp",
            .help = "it is one of torchrun's, and MPI is not needed",
            .not_under_torchrun = "",
            .perform = train_plan,
            .computed_in = on_cpus,
            .devices = cpu_backend,
            .start = train_over_tcp,
            .ranks_of_machine = ranks_started_here},
    Backend{.name = "emulated",
            .help = "pipeline ranks wait the modelled time",
            .not_under_torchrun = "",
            .perform = emulate,
            .computed_in = [](Precision said) { return said; },
            .devices = nullptr,
            .start = nullptr,
            .ranks_of_machine = nullptr},
    Backend{.name = "cuda",
            .help = "ranks compute on GPUs",
            .not_under_torchrun = "",
            .perform = train_plan,
            .computed_in = on_gpus,
            .devices = cuda_backend,
            .start = train_as_launched,
            .ranks_of_machine = ranks_started_here},
};

}  // namespace

std::span<const Backend> backends() { return backend_rows; }

const Backend& backend_named(std::string_view name) {
  const auto* const at = std::ranges::find(backend_rows, name, &Backend::name);
  SHARDPLAN_CHECK(at != backend_rows.end());
  return *at;
}

const Backend& usual_backend() {
  if (!one_of_several()) return backend_named("threads");
  return backend_named(launched() ? "mpi" : "tcp");
}

void require_start(const Backend& backend) {
  if (backend.not_under_torchrun.empty() || launched() || !one_of_several()) return;
  const Launched by = *one_of_several();
  throw RunFault(
      by.rank,
      fmt::format("torchrun started this process as rank {} of {}, and {}: leave --backend out, or "
                  "write --backend tcp",
                  by.rank, by.world, backend.not_under_torchrun));
}

}  // namespace runtime
