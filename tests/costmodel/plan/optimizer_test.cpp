#include "costmodel/plan/optimizer.hpp"

#include <doctest/doctest.h>

#include "tests/costmodel/support/scenarios.hpp"

namespace optimizer_test {

using namespace costmodel;

TEST_CASE("every optimizer is read by its name; only some keep alike, only some are sharded") {
  for (const auto name : optimizer_names) {
    CAPTURE(name);
    const Scenario s = scenarios::read(
        "model: gpt3-125m\ncluster: {base: dgx-a100, devices: 8}\ntraining: "
        "{global_batch: 8, sequence: 1024, optimizer: " +
        std::string(name) + "}\n");
    CHECK(to_string(s.training.optimizer) == name);
    CHECK(resolve_plan(s).zero <= most_zero(s.training.optimizer));
  }
  CHECK((moments_kept(Optimizer::adam) == 2 && moments_kept(Optimizer::sgd) == 1));
  CHECK((moments_kept(Optimizer::plain_sgd) == 0 && moments_kept(Optimizer::muon) == 1));
  CHECK((keeps_alike(Optimizer::plain_sgd) && !keeps_alike(Optimizer::adam8bit)));
  CHECK((most_zero(Optimizer::adam8bit) == 3 && most_zero(Optimizer::muon) == 1));
}

}  // namespace optimizer_test
