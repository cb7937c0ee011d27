#include "runtime/run/free_memory.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "costmodel/config/yaml.hpp"
#include "costmodel/estimate/plan_estimate.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "tests/run_program.hpp"

namespace fs = std::filesystem;
using costmodel::Bytes;

namespace free_memory_test {

namespace {

void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

std::optional<Bytes> left(const fs::path& root, const fs::path& group) {
  return runtime::group_memory({root, group});
}

}  // namespace

TEST_CASE("available memory: the line of /proc/meminfo, in bytes") {
  CHECK(runtime::available_memory("MemTotal:  9 kB\nMemAvailable:     20 kB\nBuffers: 3 kB\n") ==
        Bytes(20480));
  CHECK_FALSE(runtime::available_memory("MemTotal: 9 kB\n").has_value());
  CHECK_FALSE(runtime::available_memory("MemAvailable: \n").has_value());
}

TEST_CASE("group memory: the tightest of a group and those above it; max is no limit") {
  const program::Scratch scratch;
  const fs::path& root = scratch.path();
  fs::create_directories(root / "job" / "step");
  CHECK_FALSE(left(root, "job/step").has_value());
  write(root / "job" / "step" / "memory.max", "max\n");
  write(root / "job" / "step" / "memory.current", "100\n");
  CHECK_FALSE(left(root, "job/step").has_value());
  write(root / "job" / "memory.max", "1000\n");
  write(root / "job" / "memory.current", "400\n");
  CHECK(left(root, "job/step") == Bytes(600));
  write(root / "job" / "step" / "memory.max", "300\n");
  CHECK(left(root, "job/step") == Bytes(200));
  write(root / "job" / "step" / "memory.current", "301\n");  // a limit that was lowered
  CHECK(left(root, "job/step") == Bytes(0));
}

TEST_CASE("group memory: what a full cache of files holds is free") {
  const program::Scratch scratch;
  const fs::path& root = scratch.path();
  write(root / "memory.max", "1000\n");
  write(root / "memory.current", "990\n");
  write(root / "memory.stat",
        "anon 200\nfile 720\nshmem 20\ninactive_file 300\nactive_file 400\n"
        "unevictable 5\nslab_reclaimable 40\nslab_unreclaimable 30\nworkingset_refault_file 7\n");
  CHECK(left(root, "") == Bytes(750));
  write(root / "memory.current", "90\n");  // which may be read a moment before
  CHECK(left(root, "") == Bytes(1000));
}

TEST_CASE("group memory, version 1: other names, and a limit near 2^63 is none") {
  const program::Scratch scratch;
  const fs::path& root = scratch.path();
  fs::create_directories(root / "job");
  write(root / "memory.limit_in_bytes", "9223372036854771712\n");
  write(root / "memory.usage_in_bytes", "123456\n");
  CHECK_FALSE(left(root, "job").has_value());
  write(root / "job" / "memory.limit_in_bytes", "1000\n");
  write(root / "job" / "memory.usage_in_bytes", "950\n");
  CHECK(left(root, "job") == Bytes(50));
  write(root / "job" / "memory.stat",
        "cache 600\ninactive_file 1\nactive_file 2\ntotal_inactive_file 300\n"
        "total_active_file 200\n");
  CHECK(left(root, "job") == Bytes(550));
}

TEST_CASE("memory groups: version 2's line, and that of version 1's controller of memory") {
  const auto told = [](const std::string& text) {
    std::string all;
    for (const auto& group : runtime::memory_groups(text))
      all += group.root + " " + group.path + ";";
    return all;
  };
  CHECK(told("0::/user.slice/job\n") == "/sys/fs/cgroup user.slice/job;");
  CHECK(told("0::/\n") == "/sys/fs/cgroup ;");
  CHECK(told("12:cpuset:/a\n9:memory:/docker/1f\n4:cpu,cpuacct:/b\n1:name=systemd:/s\n0::/x\n") ==
        "/sys/fs/cgroup/memory docker/1f;/sys/fs/cgroup x;");
  CHECK(told("3:hugetlb,memory:/both\n") == "/sys/fs/cgroup/memory both;");
  CHECK(told("").empty());
  CHECK(told("nonsense\n9:memory\n").empty());
}

TEST_CASE("free memory: this machine says some") {
  const auto free = runtime::free_memory();
  REQUIRE(free.has_value());
  CHECK(*free > Bytes(0));
}

TEST_CASE("memory of ranks: that of their stages, not of a mean one") {
  const costmodel::ConfigPath path{{SHARDPLAN_SOURCE_DIR "/configs"}};
  const auto s = costmodel::load_scenario(costmodel::scenario_file("tiny-gpt-cpu", path), path, {});
  const auto predicted =
      estimate_of(s.model, s.cluster, s.training, costmodel::resolve_plan(s));  // pp 2, dp 2
  const Bytes first = predicted.memory[0].total(), last = predicted.memory[1].total();
  REQUIRE(first != last);
  CHECK(runtime::memory_of_ranks(predicted, {0, 1}) == first + first);
  CHECK(runtime::memory_of_ranks(predicted, {2, 3}) == last + last);
  CHECK(runtime::memory_of_ranks(predicted, {1, 3}) == first + last);
  CHECK(runtime::memory_of_ranks(predicted, {3, 4, 5}) == last);
  CHECK(runtime::memory_of_ranks(predicted, {}) == Bytes(0));

  auto uneven = predicted;  // three ranks in front, one behind
  uneven.meshes.resize(2);
  uneven.meshes[0].devices = 3;
  uneven.meshes[1].devices = 1;
  CHECK(runtime::memory_of_ranks(uneven, {0, 1, 2, 3}) == first + first + first + last);
  CHECK(runtime::memory_of_ranks(uneven, {2, 3, 4}) == first + last);
}

}  // namespace free_memory_test
