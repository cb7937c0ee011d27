// The records of the backends: each is whole, and a run that names none gets that of its launcher.
#include "runtime/run/backends.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "runtime/backend/transport.hpp"
#include "runtime/run/compute_backend.hpp"

namespace backends_test {

namespace {

// Sets environment variables of a launcher for as long as it lives.
class LaunchedBy {
 public:
  explicit LaunchedBy(std::vector<std::pair<const char*, const char*>> variables)
      : variables_(std::move(variables)) {
    for (const auto& [name, value] : variables_) setenv(name, value, 1);
  }
  ~LaunchedBy() {
    for (const auto& [name, value] : variables_) unsetenv(name);
  }
  LaunchedBy(const LaunchedBy&) = delete;
  LaunchedBy& operator=(const LaunchedBy&) = delete;

 private:
  std::vector<std::pair<const char*, const char*>> variables_;
};

std::string refused(const char* name) {
  try {
    runtime::require_start(runtime::backend_named(name));
  } catch (const runtime::RunFault& fault) {
    return fault.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a backend that computes has devices, a start and the ranks of a machine") {
  int waiting = 0;
  for (const runtime::Backend& backend : runtime::backends()) {
    CAPTURE(backend.name);
    CHECK((&runtime::backend_named(backend.name) == &backend));
    CHECK_FALSE(backend.help.empty());
    CHECK((backend.perform != nullptr));
    const bool computes = backend.devices != nullptr;
    CHECK((backend.start != nullptr) == computes);
    CHECK((backend.ranks_of_machine != nullptr) == computes);
    if (computes) CHECK(backend.devices().on_gpus == (backend.name == "cuda"));
    waiting += computes ? 0 : 1;
  }
  CHECK(waiting == 1);
}

TEST_CASE("the usual backend is that of the launcher, and torchrun's ranks refuse the others") {
  CHECK(runtime::usual_backend().name == "threads");
  CHECK(refused("threads") == "");
  {
    const LaunchedBy torchrun({{"RANK", "1"},
                               {"WORLD_SIZE", "4"},
                               {"MASTER_ADDR", "localhost"},
                               {"TORCHELASTIC_RUN_ID", "a"}});
    CHECK(runtime::usual_backend().name == "tcp");
    CHECK(refused("threads").find("runs all ranks in one process") != std::string::npos);
    CHECK(refused("mpi").find("wants ranks that mpirun or srun started") != std::string::npos);
    for (const char* name : {"tcp", "cuda", "emulated"}) CHECK(refused(name) == "");
  }
  const LaunchedBy mpirun({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}});
  CHECK(runtime::usual_backend().name == "mpi");
  CHECK(refused("threads") == "");
}

TEST_CASE("threads are all ranks of a machine") {
  costmodel::ParallelPlan plan;
  plan.tp = 2;
  plan.dp = 3;
  CHECK(runtime::backend_named("threads").ranks_of_machine(plan).size() == 6);
  CHECK(runtime::backend_named("mpi").ranks_of_machine(plan).size() == 1);
}

}  // namespace backends_test
