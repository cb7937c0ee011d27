// Served tokens do not depend on the plan, nor on the cache; bytes and memory are those predicted.
#include "runtime/run/serve_command.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/runtime/support/served_runs.hpp"
#include "tests/sanitized.hpp"

namespace serve_command_test {

using namespace runtime;
using served_runs::check_exact;
using served_runs::served;

TEST_CASE("every plan answers with the tokens of one rank, and holds and sends what is predicted") {
  for (const char* model : {served_runs::gpt, served_runs::llama}) {
    CAPTURE(model);
    const ServeResult alone = served(model, "{tp: 1, pp: 1, dp: 1}");
    check_exact(alone);
    CHECK(alone.tokens.size() == 5 * 14);
    const auto [least, most] = std::ranges::minmax(alone.tokens);
    CHECK(least >= 0);
    CHECK(most < alone.scenario.model.vocab);
    CHECK(least < most);
    for (const char* plan :
         {"{tp: 2, pp: 1, dp: 1}", "{tp: 1, pp: 2, dp: 1}", "{tp: 2, pp: 2, dp: 1}",
          "{tp: 4, pp: 1, dp: 1}", "{tp: 1, pp: 4, dp: 1}", "{tp: 1, pp: 1, dp: 5}"}) {
      // Four ranks in two groups each way, and ranks that share nothing.
      const std::string words = plan;
      if (thread_sanitized && words != "{tp: 2, pp: 2, dp: 1}" && !words.ends_with("dp: 5}"))
        continue;
      CAPTURE(plan);
      const ServeResult cut = served(model, plan);
      CHECK(cut.tokens == alone.tokens);
      check_exact(cut);
    }
  }
}

TEST_CASE("decoding from the cache makes the tokens that computing all of them again makes") {
  for (const char* model : {served_runs::gpt, served_runs::llama}) {
    if (thread_sanitized && model == served_runs::gpt) continue;
    CAPTURE(model);
    const ServeResult cached = served(model, "{tp: 2, pp: 2, dp: 1}");
    ServeRequest again = served_runs::request(model, "{tp: 1, pp: 1, dp: 1}");
    const ServedJob& job = cached.job;
    // Each round prefills the prompts and the answers so far, and takes one token.
    std::vector<std::vector<std::int64_t>> texts;
    for (std::int64_t i = 0; i < job.batch.requests; ++i) {
      const auto from = job.prompts.begin() + i * job.batch.input;
      texts.emplace_back(from, from + job.batch.input);
    }
    ServedJob one = job;
    one.sizes = {};
    one.batch.parts = 1;
    one.batch.output = 1;
    for (std::int64_t round = 0; round < job.batch.output; ++round) {
      one.prompts.clear();
      for (const auto& text : texts)
        one.prompts.insert(one.prompts.end(), text.begin(), text.end());
      one.batch.input = job.batch.input + round;
      const std::vector<std::int64_t> next = serve_job(one, again).value().tokens;
      for (std::size_t i = 0; i < texts.size(); ++i) {
        CHECK(next[i] == cached.tokens[i * static_cast<std::size_t>(job.batch.output) +
                                       static_cast<std::size_t>(round)]);
        texts[i].push_back(next[i]);
      }
    }
  }
}

TEST_CASE("prompts that exceed a pass together are prefilled one after the other") {
  const char* plan = "{tp: 2, pp: 2, dp: 1}";
  const ServeResult whole = served(served_runs::llama, plan);
  const ServeResult apart =
      serve_plan(
          served_runs::request(
              served_runs::llama, plan,
              "input_tokens: 21, output_tokens: 14, requests: 5, max_num_batched_tokens: 22"))
          .value();
  CHECK(apart.tokens == whole.tokens);
  check_exact(apart);
  CHECK(apart.activations.front() < whole.activations.front());
}

TEST_CASE("a prompt that exceeds a pass is prefilled in chunks, to the same tokens and bytes") {
  for (const char* model : {served_runs::gpt, served_runs::llama}) {
    for (const char* plan : {"{tp: 1, pp: 1, dp: 1}", "{tp: 2, pp: 2, dp: 1}"}) {
      const ServeResult chunks =
          serve_plan(served_runs::request(model, plan,
                                          "input_tokens: 21, output_tokens: 14, requests: 5, "
                                          "max_num_batched_tokens: 8, chunked_prefill: true"))
              .value();
      CHECK(chunks.tokens == served(model, plan).tokens);
      check_exact(chunks);
    }
  }
}

TEST_CASE("the pace is known from the second batch on, and every batch answers alike") {
  ServeRequest request = served_runs::request(served_runs::llama, "{tp: 2, pp: 2, dp: 1}");
  request.iterations = 2;
  const ServeResult r = serve_plan(request).value();
  CHECK(r.tokens == served(served_runs::llama, "{tp: 2, pp: 2, dp: 1}").tokens);
  check_exact(r);
  REQUIRE(r.at_pace.has_value());
  CHECK(r.at_pace->token.value > 0);
  CHECK(r.at_pace->first_token.value > 0);
  CHECK(r.pace > 0);
  CHECK(r.measured.token.value > 0);
  CHECK_FALSE(served(served_runs::llama, "{tp: 1, pp: 1, dp: 1}").at_pace.has_value());
  CHECK(limit_missed(r, 1e9).empty());
  CHECK(limit_missed(r, 1e-9).find("time a token is predicted") == 0);
}

TEST_CASE("fewer requests than stages leave parts of the batch empty") {
  const char* one = "input_tokens: 5, output_tokens: 6, requests: 1";
  const auto alone = served_runs::request(served_runs::llama, "{tp: 1, pp: 1, dp: 1}", one);
  auto cut = served_runs::request(served_runs::llama, "{tp: 2, pp: 4, dp: 1}", one);
  cut.iterations = 2;
  const ServeResult r = serve_plan(cut).value();
  CHECK(r.tokens == serve_plan(alone).value().tokens);
  check_exact(r);
  CHECK(r.at_pace.value().token.value > 0);
}

TEST_CASE("answers of one token have no time a token") {
  auto request = served_runs::request(served_runs::gpt, "{tp: 2, pp: 2, dp: 1}",
                                      "input_tokens: 5, output_tokens: 1, requests: 3");
  request.iterations = 2;
  const ServeResult r = serve_plan(request).value();
  CHECK(r.tokens.size() == 3);
  CHECK(compare(r).front().at_pace.value() > 0);
  CHECK(compare(r).front().key == "first_token_s");
  check_exact(r);
}

TEST_CASE(
    "another seed has other weights and prompts; 16 bits are computed in 32, and it is said") {
  ServeRequest request = served_runs::request(served_runs::llama, "{tp: 1, pp: 1, dp: 1}");
  const auto first = serve_plan(request).value().tokens;
  request.seed = 2;
  const ServeResult other = serve_plan(request).value();
  CHECK(other.tokens != first);
  for (const std::string& note : other.notes) CHECK(note.find("computed in") != 0);
}

TEST_CASE("a batch that exceeds the limit of memory names the rank") {
  ServeRequest request = served_runs::request(served_runs::llama, "{tp: 1, pp: 1, dp: 1}");
  request.memory_limit = 4096;
  CHECK_THROWS_WITH_AS(serve_plan(request), doctest::Contains("out of memory"), RunFault);
}

}  // namespace serve_command_test
