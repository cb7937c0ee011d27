#include "planner/commands/sweep_axes.hpp"

#include <doctest/doctest.h>

#include "costmodel/config/yaml.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace weak_scaling_test {

using costmodel::Value;
using fixtures::config_error;
using fixtures::contains;
using planner::Axis;
using planner::WeakScaling;

namespace {

const std::vector<Axis> axes{{"plan.tp", {"1", "2"}}, {"cluster.devices", {"8", "16", "20"}}};

Value scenario(const std::string& batch) {
  return costmodel::parse_yaml("training: {global_batch: " + batch + "}\n", "test.yaml");
}

std::string batch_at(const std::string& batch, const std::string& devices) {
  Value placed = scenario(batch);
  WeakScaling(axes, placed).place({"1", devices}, placed);
  return placed.find("training")->find("global_batch")->text;
}

}  // namespace

TEST_CASE("the batch is in proportion to the devices, from the first number swept") {
  CHECK(batch_at("64", "8") == "64");
  CHECK(batch_at("64", "16") == "128");
  CHECK(batch_at("64", "20") == "160");
  CHECK(batch_at("64", "4") == "32");
}

TEST_CASE("a batch that is no whole number is told, one that cannot be read is left") {
  CHECK(batch_at("6", "20") == "15");
  CHECK(contains(config_error([] { batch_at("3", "20"); }), "the batch would be 7.5 sequences"));
  CHECK(contains(config_error([] { batch_at("64", "0"); }), "the batch would be 0 sequences"));
  CHECK(batch_at("many", "16") == "many");
  CHECK(batch_at("64", "many") == "64");
}

TEST_CASE("devices must be swept, and the batch not") {
  const Value value = scenario("64");
  CHECK(contains(config_error([&] { WeakScaling({axes[0]}, value); }),
                 "--weak lets the batch grow with the devices"));
  const std::vector<Axis> both{axes[1], {"training.global_batch", {"64"}}};
  CHECK(contains(config_error([&] { WeakScaling(both, value); }), "which is swept"));
}

}  // namespace weak_scaling_test
