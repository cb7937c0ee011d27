#include "planner/diagnosis/tensor_ladder.hpp"

#include <doctest/doctest.h>

#include "tests/costmodel/serving/support/served.hpp"

using namespace planner;

namespace {
std::vector<TensorRung> ladder_on(const char* cluster, double in_flight) {
  const auto s = served::scenario("input_tokens: 256, output_tokens: 128, concurrency: 64",
                                  "llama-7b", cluster, 4, "{tp: 1}");
  return tensor_ladder(s, 1, in_flight);
}
}  // namespace

TEST_CASE("Llama 7B: tp 2 and 4 bring little over PCIe, and more over NVLink") {
  const auto pcie = ladder_on("pcie-8x-a100", 64), nvlink = ladder_on("dgx-a100", 64);
  REQUIRE(pcie.size() == 3);
  CHECK(pcie[1].output_per_s < 1.25 * pcie[0].output_per_s);
  CHECK(pcie[2].output_per_s < 1.25 * pcie[0].output_per_s);
  CHECK(nvlink[1].output_per_s > 1.25 * nvlink[0].output_per_s);
  CHECK(nvlink[2].output_per_s > 1.5 * nvlink[0].output_per_s);
  for (const auto& rung : pcie) CHECK(rung.per_device() == rung.output_per_s / rung.tp);
}

TEST_CASE("The words say what reading saves and what all-reduces cost") {
  const auto s = served::scenario("input_tokens: 256, output_tokens: 128, concurrency: 64",
                                  "llama-7b", "pcie-8x-a100", 4, "{tp: 1}");
  const auto sentences = tensor_sentences(s, tensor_ladder(s, 1, 64));
  REQUIRE(sentences.size() == 2);
  CHECK(sentences[0].find("From tp 1 to tp 2 each device reads half of the weights") == 0);
  CHECK(sentences[0].find("65 all-reduces of 512 KiB over pcie") != std::string::npos);
  CHECK(sentences[1].find("the all-reduces eat what the weights save") != std::string::npos);
  CHECK(sentences[0].find("the cache has room") == std::string::npos);
}

TEST_CASE("Where a card's cache is small, more cards also let more requests run, and it is said") {
  const auto s = served::scenario("input_tokens: 512, output_tokens: 128, concurrency: 64",
                                  "llama-7b", "pcie-8x-rtx-4090", 4, "{tp: 1}");
  const auto ladder = tensor_ladder(s, 1, 64);
  CHECK(ladder[1].running > ladder[0].running);
  CHECK(tensor_sentences(s, ladder)[0].find("the cache has room for 64") != std::string::npos);
}

TEST_CASE("A model that one device does not hold needs tp") {
  const auto s = served::scenario("input_tokens: 512, output_tokens: 128, concurrency: 8",
                                  "llama-2-70b", "dgx-h100", 8, "{tp: 8}");
  const auto ladder = tensor_ladder(s, 1, 8);
  CHECK_FALSE(ladder.front().fits);
  CHECK(tensor_sentences(s, ladder).front().find("is needed") != std::string::npos);
}

TEST_CASE("The ladder has the stages of the plan, so that it does not call its tp too small") {
  const auto s = served::scenario("input_tokens: 512, output_tokens: 128, concurrency: 8",
                                  "llama-2-70b", "dgx-h100", 8, "{tp: 2, pp: 4, dp: 1}");
  const auto ladder = tensor_ladder(s, 4, 8);
  REQUIRE(ladder.size() == 2);
  CHECK(ladder[1].fits);
  for (const auto& sentence : tensor_sentences(s, ladder))
    CHECK(sentence.find("tp 4 is needed") == std::string::npos);
}
