// What the environment says of the rank that a process is.
#include "runtime/ranks/launch.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace launch_test {

namespace {

// "" for none, else "RANK of WORLD".
std::string told_by(const std::map<std::string, std::string>& environment) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE",
                           "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_ID"})
    unsetenv(name);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  const auto told = runtime::launched();
  for (const auto& [name, value] : environment) unsetenv(name.c_str());
  return told ? std::to_string(told->rank) + " of " + std::to_string(told->world) : "";
}

}  // namespace

TEST_CASE("nobody started ranks") {
  CHECK(told_by({}).empty());
  CHECK(told_by({{"OMPI_COMM_WORLD_SIZE", "4"}}).empty());
}

TEST_CASE("mpirun and srun say which rank this is") {
  CHECK(told_by({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}}) == "3 of 4");
  CHECK(told_by({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}) == "0 of 1");
  CHECK(told_by({{"SLURM_PROCID", "7"}, {"SLURM_NTASKS", "16"}, {"SLURM_STEP_ID", "0"}}) ==
        "7 of 16");
}

TEST_CASE("torchrun says which rank this is, where MPI does not") {
  CHECK_FALSE(runtime::one_of_several());
  setenv("RANK", "2", 1);
  setenv("WORLD_SIZE", "4", 1);
  CHECK_FALSE(runtime::launched_by_torchrun());  // these alone are anybody's
  setenv("MASTER_ADDR", "localhost", 1);
  REQUIRE(runtime::launched_by_torchrun());
  CHECK(runtime::launched_by_torchrun()->rank == 2);
  REQUIRE(runtime::one_of_several());
  CHECK(runtime::one_of_several()->world == 4);
  setenv("OMPI_COMM_WORLD_RANK", "5", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "8", 1);
  REQUIRE(runtime::one_of_several());
  CHECK(runtime::one_of_several()->rank == 5);  // mpirun within it will do
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}) unsetenv(name);
  setenv("RANK", "0", 1);
  setenv("WORLD_SIZE", "1", 1);
  CHECK(runtime::launched_by_torchrun());
  CHECK_FALSE(runtime::one_of_several());  // alone
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR"}) unsetenv(name);
}

TEST_CASE("the ranks of a machine share its cores") {
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  CHECK(runtime::cores_per_rank(1) == cores);
  CHECK(runtime::cores_per_rank(2) == std::max(1, cores / 2));
  CHECK(runtime::cores_per_rank(3 * cores) == 1);
  const std::map<std::string, std::string> mpis{{"OMPI_COMM_WORLD_RANK", "0"},
                                                {"OMPI_COMM_WORLD_SIZE", "64"},
                                                {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  for (const auto& [name, value] : mpis) setenv(name.c_str(), value.c_str(), 1);
  CHECK(runtime::cores_per_rank(64) == std::max(1, cores / 2));  // two of them are here
  for (const auto& [name, value] : mpis) unsetenv(name.c_str());
}

TEST_CASE("each process of a machine takes a number of its own") {
  CHECK(runtime::local_rank() == 0);
  setenv("SLURM_LOCALID", "3", 1);
  CHECK(runtime::local_rank() == 3);
  setenv("OMPI_COMM_WORLD_LOCAL_RANK", "5", 1);
  CHECK(runtime::local_rank() == 5);
  setenv("OMPI_COMM_WORLD_LOCAL_RANK", "-5", 1);
  CHECK(runtime::local_rank() == 3);
  unsetenv("OMPI_COMM_WORLD_LOCAL_RANK");
  unsetenv("SLURM_LOCALID");
}

TEST_CASE("torchrun's word holds where srun or mpirun started torchrun") {
  const std::map<std::string, std::string> slurms{
      {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_STEP_ID", "0"}, {"SLURM_LOCALID", "0"}};
  const std::map<std::string, std::string> mpis{{"OMPI_COMM_WORLD_RANK", "1"},
                                                {"OMPI_COMM_WORLD_SIZE", "2"},
                                                {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                                                {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}};
  const std::map<std::string, std::string> torchruns{{"RANK", "6"},
                                                     {"WORLD_SIZE", "8"},
                                                     {"LOCAL_RANK", "2"},
                                                     {"LOCAL_WORLD_SIZE", "4"},
                                                     {"MASTER_ADDR", "node1"},
                                                     {"TORCHELASTIC_RUN_ID", "none"}};
  for (auto all : {slurms, mpis}) {
    all.insert(torchruns.begin(), torchruns.end());
    for (const auto& [name, value] : all) setenv(name.c_str(), value.c_str(), 1);
    CHECK_FALSE(runtime::launched());
    const auto told = runtime::one_of_several();
    REQUIRE(told);
    CHECK(told->rank == 6);
    CHECK(told->world == 8);
    CHECK(runtime::local_rank() == 2);
    CHECK(runtime::ranks_here() == std::vector{4, 5, 6, 7});
    unsetenv("TORCHELASTIC_RUN_ID");  // these may be a user's, for ranks of srun or mpirun
    CHECK(runtime::launched());
    CHECK(runtime::local_rank() == 0);
    for (const auto& [name, value] : all) unsetenv(name.c_str());
  }
}

TEST_CASE("the ranks of this machine, as srun dealt them out") {
  const auto here = [](const char* tasks, const char* node, const char* rank, const char* way) {
    const std::map<std::string, std::string> all{
        {"SLURM_PROCID", rank},     {"SLURM_NTASKS", "11"}, {"SLURM_STEP_ID", "0"},
        {"SLURM_LOCALID", "0"},     {"SLURM_NODEID", node}, {"SLURM_STEP_TASKS_PER_NODE", tasks},
        {"SLURM_DISTRIBUTION", way}};
    for (const auto& [name, value] : all) setenv(name.c_str(), value.c_str(), 1);
    const auto ranks = runtime::ranks_here();
    for (const auto& [name, value] : all) unsetenv(name.c_str());
    return ranks;
  };
  CHECK(here("4(x2),3", "0", "0", "block") == std::vector{0, 1, 2, 3});
  CHECK(here("4(x2),3", "1", "4", "block:cyclic") == std::vector{4, 5, 6, 7});
  CHECK(here("4(x2),3", "2", "8", "") == std::vector{8, 9, 10});
  CHECK(here("4(x2),3", "0", "0", "cyclic") == std::vector{0, 3, 6, 9});
  CHECK(here("4(x2),3", "1", "4", "cyclic:block") == std::vector{1, 4, 7, 10});
  CHECK(here("5,1,5", "0", "5", "cyclic") == std::vector{0, 3, 5, 7, 9});
  CHECK(here("4,nonsense", "0", "0", "block") == std::vector{0});  // alone, for all we know
  CHECK(here("1(x11)", "0", "3", "block") == std::vector{3});      // of another step
}

TEST_CASE("the ranks of this machine under mpirun and torchrun are consecutive") {
  CHECK(runtime::ranks_here() == std::vector{0});
  const std::map<std::string, std::string> all{{"OMPI_COMM_WORLD_RANK", "6"},
                                               {"OMPI_COMM_WORLD_SIZE", "8"},
                                               {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                                               {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};
  for (const auto& [name, value] : all) setenv(name.c_str(), value.c_str(), 1);
  CHECK(runtime::ranks_here() == std::vector{4, 5, 6, 7});
  for (const auto& [name, value] : all) unsetenv(name.c_str());
}

TEST_CASE("a batch script or shell of Slurm is no rank, and nonsense is none") {
  CHECK(told_by({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "16"}}).empty());
  CHECK(told_by({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "16"}, {"SLURM_STEP_ID", "4294967291"}})
            .empty());
  CHECK(told_by({{"PMI_RANK", "4"}, {"PMI_SIZE", "4"}}).empty());
  CHECK(told_by({{"PMI_RANK", "-1"}, {"PMI_SIZE", "4"}}).empty());
  CHECK(told_by({{"PMI_RANK", "1x"}, {"PMI_SIZE", "4"}}).empty());
}

}  // namespace launch_test
