// Releases of Megatron-LM: what each accepts, and a plan in the words of one.
#include "planner/frameworks/framework_version.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "costmodel/base/error.hpp"

namespace framework_version_test {

using planner::framework_version;
using Strings = std::vector<std::string>;

TEST_CASE("the newest release, its flags sorted and none twice") {
  const auto& newest = framework_version("megatron");
  CHECK(newest.name == "core-0.20");
  CHECK(newest.flags.size() == 876);
  CHECK(newest.has_flag("--num-layers"));
  CHECK_FALSE(newest.has_flag("num-layers"));
  CHECK_FALSE(newest.has_flag("--number-of-layers"));
  CHECK(newest.is_harmless("--save-interval"));
  CHECK_FALSE(newest.is_harmless("--num-layers"));
}

TEST_CASE("each release has what the one before it has, and its own changes") {
  const Strings all = planner::framework_versions("megatron");
  REQUIRE(all.size() == 7);
  CHECK(all.front() == "core-0.14");
  const std::vector<std::size_t> sizes{514, 575, 680, 731, 785, 845, 876};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& flags = framework_version("megatron", all[i]).flags;
    CHECK(flags.size() == sizes[i]);
    CHECK(std::ranges::adjacent_find(flags, std::greater_equal<>()) == flags.end());
  }
  CHECK(framework_version("megatron", "core-0.16").has_flag("--hybrid-mlp-ratio"));
  CHECK_FALSE(framework_version("megatron", "core-0.17").has_flag("--hybrid-mlp-ratio"));
  CHECK_THROWS_WITH(
      framework_version("megatron", "core-1"),
      doctest::Contains("there is no version 'core-1' of megatron; known: core-0.14"));
}

namespace {

// The arguments for a release.
Strings in(const std::string& release, const Strings& arguments) {
  planner::FrameworkCall call{arguments, {}};
  write_for(framework_version("megatron", release), call);
  return call.arguments;
}

}  // namespace

TEST_CASE("words of another release, with what differs") {
  const Strings newest{"--moe-flex-dispatcher-backend hybridep", "--moe-flex-dispatcher-num-sms 32",
                       "--bf16"};
  CHECK(in("core-0.19", newest) == newest);
  planner::FrameworkCall call{newest, {"A=1"}};
  const Strings notes = write_for(framework_version("megatron", "core-0.18"), call);
  CHECK(call.arguments == Strings{newest[0], "--moe-hybridep-num-sms 32", "--bf16"});
  REQUIRE(notes.size() == 1);
  CHECK(notes[0] ==
        "Megatron-LM core 0.18.2 has --moe-hybridep-num-sms for --moe-flex-dispatcher-num-sms");
  // Its gradients are of this type without the flag.
  const Strings sharded{"--megatron-fsdp-main-grads-dtype fp32", "--bf16"};
  CHECK(in("core-0.16", sharded) == Strings{"--bf16"});
  CHECK(in("core-0.17", sharded) == sharded);
  CHECK(in("core-0.15",
           {"--moe-flex-dispatcher-backend deepep", "--moe-flex-dispatcher-num-sms 20"}) ==
        Strings{"--moe-enable-deepep", "--moe-deepep-num-sms 20"});
}

TEST_CASE("what a release lacks, and what its validators refuse") {
  CHECK_THROWS_WITH(in("core-0.17", {"--moe-paged-stash"}),
                    doctest::Contains("core 0.17.0 has no --moe-paged-stash"));
  const Strings loss{"--cross-entropy-loss-fusion", "--cross-entropy-fusion-impl te"};
  CHECK(in("core-0.17", loss) == loss);
  CHECK_THROWS_WITH(in("", loss), doctest::Contains("refuses --cross-entropy-fusion-impl te with "
                                                    "--cross-entropy-loss-fusion"));
  CHECK_THROWS_WITH(in("core-0.14", {"--moe-grouped-gemm", "--fp16"}),
                    doctest::Contains("refuses --moe-grouped-gemm without --bf16"));
  CHECK(in("core-0.16", {"--moe-grouped-gemm", "--fp16"}).size() == 2);
  // Until 0.18 shared experts computed during the exchange of alltoall alone.
  const Strings flex{"--moe-token-dispatcher-type flex", "--moe-shared-expert-overlap"};
  const Strings alltoall{"--moe-token-dispatcher-type alltoall", "--moe-shared-expert-overlap"};
  for (const char* release : {"core-0.14", "core-0.15", "core-0.16", "core-0.17"}) {
    CHECK_THROWS_WITH(in(release, flex), doctest::Contains("refuses --moe-shared-expert-overlap"));
    CHECK(in(release, alltoall) == alltoall);
  }
  CHECK(in("core-0.18", flex) == flex);
  planner::FrameworkCall graphs{{"--cuda-graph-impl local"},
                                {"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "A=1"}};
  CHECK(write_for(framework_version("megatron", "core-0.15"), graphs).size() == 1);
  CHECK(graphs.environment == Strings{"A=1"});
}

}  // namespace framework_version_test
