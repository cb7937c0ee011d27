// A job's settings by their keys.
#include "planner/diagnosis/job_settings.hpp"

#include <doctest/doctest.h>

#include <string>

#include "tests/costmodel/support/fixtures.hpp"

namespace job_settings_test {

using namespace planner;

namespace {

Job job() {
  Job j{.cluster = fixtures::cluster(64), .training = fixtures::training(128, 2048), .plan = {}};
  j.plan.tp = 4;
  j.plan.pp = 2;
  j.plan.dp = 8;
  return j;
}

}  // namespace

TEST_CASE("each key that is set is read back") {
  for (const auto& [key, value] : {std::pair<const char*, const char*>{"plan.micro_batch", "4"},
                                   {"plan.zero", "2"},
                                   {"plan.ep", "2"},
                                   {"plan.dp", "4"},
                                   {"plan.sequence_parallel", "true"},
                                   {"plan.recompute", "full"},
                                   {"training.global_batch", "256"},
                                   {"training.sequence", "4096"},
                                   {"training.precision", "fp8"},
                                   {"training.overlap.overlap_grad_reduce", "true"},
                                   {"training.overlap.overlap_param_gather", "true"},
                                   {"training.overlap.tp_comm_overlap", "true"}}) {
    CAPTURE(key);
    Job j = job();
    REQUIRE(setting(j, key));
    CHECK(*setting(j, key) != value);
    CHECK(set_setting(j, key, value));
    CHECK(*setting(j, key) == value);
  }
}

TEST_CASE("sizes that follow are settled") {
  Job j = job();
  CHECK(set_setting(j, "plan.tp", "8"));
  CHECK(j.plan.dp == 4);
  CHECK(set_setting(j, "plan.vpp", "2"));
  CHECK(j.plan.schedule == costmodel::ScheduleKind::interleaved);
}

TEST_CASE("what is no value, no key or another machine leaves the job as it was") {
  Job j = job();
  for (const auto& [key, value] : {std::pair<const char*, const char*>{"plan.tp", "many"},
                                   {"plan.tp", "-1"},
                                   {"plan.recompute", "some"},
                                   {"training.precision", "int8"},
                                   {"plan.sequence_parallel", "maybe"},
                                   {"training.global_batch", "0"},
                                   {"cluster.devices", "128"},
                                   {"plan.colour", "1"}}) {
    CAPTURE(key);
    CHECK_FALSE(set_setting(j, key, value));
  }
  CHECK(j.plan == job().plan);
  CHECK(*setting(j, "cluster.devices") == "64");
  CHECK_FALSE(setting(j, "plan.colour"));
}

}  // namespace job_settings_test
