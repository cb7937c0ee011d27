// What nvidia-smi and Slurm say of a machine, as clusters.
#include "planner/frameworks/import_machine.hpp"

#include <doctest/doctest.h>

#include <string>

#include "costmodel/base/error.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace import_machine_test {

using costmodel::Value;
using fixtures::contains;

namespace {

std::string tiers_of(const planner::ImportedJob& job) {
  std::string text;
  for (const auto& tier : job.scenario.find("tiers")->items)
    text += tier.find("name")->text + " " + tier.find("devices")->text + "; ";
  return text;
}

constexpr const char* dgx =
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV18\tNV18\tNV18\tPIX\tSYS\t0-51\t0\tN/A\n"
    "GPU1\tNV18\t X \tNV18\tNV18\tNODE\tSYS\t0-51\t0\tN/A\n"
    "GPU2\tNV18\tNV18\t X \tNV18\tSYS\tNODE\t52-103\t1\tN/A\n"
    "GPU3\tNV18\tNV18\tNV18\t X \tSYS\tNODE\t52-103\t1\tN/A\n"
    "NIC0\tPIX\tNODE\tSYS\tSYS\t X \tSYS\n"
    "NIC1\tSYS\tSYS\tNODE\tNODE\tSYS\t X \n\n"
    "Legend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe\n\n"
    "NIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n";

}  // namespace

TEST_CASE("a node with a switch of NVLink is one tier, and its NICs a network") {
  const auto job = planner::import_topology(dgx, "topo.txt");
  CHECK(job.scenario.find("devices_per_node")->text == "4");
  CHECK(job.scenario.find("device")->text == "REPLACE");
  CHECK(tiers_of(job) == "nvlink 4; network REPLACE; ");
  REQUIRE(job.missing.size() == 3);
  CHECK(contains(job.missing[1].remedy, "18 links a pair"));
  CHECK(contains(job.missing[2].remedy, "2 NICs a node, 1 of them behind"));
}

TEST_CASE("pairs of NVLink, then switches and sockets, are a tier each") {
  const auto job = planner::import_topology(
      "      GPU0  GPU1  GPU2  GPU3  CPU Affinity\n"
      "GPU0  X     NV4   NODE  SYS   0-15\n"
      "GPU1  NV4   X     SYS   SYS   0-15\n"
      "GPU2  NODE  SYS   X     NV4   16-31\n"
      "GPU3  SYS   SYS   NV4   X     16-31\n",
      "topo.txt");
  CHECK(tiers_of(job) == "nvlink 2; numa-node 4; ");
  CHECK(contains(to_yaml(job), "# Missing: tiers.0: bandwidth and latency of 4 links"));
}

TEST_CASE("paths that join unequal groups make no tier") {
  const auto job = planner::import_topology(
      "GPU0 GPU1 GPU2\n"
      "GPU0 X PIX SYS\nGPU1 PIX X SYS\nGPU2 SYS SYS X\n",
      "topo.txt");
  CHECK(tiers_of(job) == "sockets 3; ");
  CHECK(job.notes.front() == "groups of 1 to 2 devices by PIX: no tier of one size");
}

TEST_CASE("another text is refused") {
  for (const char* text : {"", "hello\n", "GPU0 GPU1\nGPU0 X NV1\n"})
    CHECK_THROWS_AS(planner::import_topology(text, "topo.txt"), costmodel::ConfigError);
  CHECK_THROWS_AS(planner::import_slurm("PATH=/bin\n", "env.txt"), costmodel::ConfigError);
}

TEST_CASE("Slurm's environment names devices and nodes") {
  const auto job = planner::import_slurm(
      "SLURM_JOB_NUM_NODES=4\nSLURM_GPUS_ON_NODE=8\nSLURM_JOB_NODELIST=n[1-4]\n", "env.txt");
  const Value* cluster = job.scenario.find("cluster");
  CHECK(cluster->find("devices")->text == "32");
  CHECK(cluster->find("devices_per_node")->text == "8");
  REQUIRE(job.missing.size() == 1);
  CHECK(job.missing.front().key == "cluster.base");
}

}  // namespace import_machine_test
