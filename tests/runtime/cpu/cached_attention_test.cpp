// Attention to cached keys and values is attention to all keys and values.
#include "runtime/cpu/cached_attention.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <vector>

#include "runtime/cpu/flash_attention.hpp"
#include "runtime/cpu/random.hpp"

namespace cached_attention_test {

using namespace runtime;
using cpu::CachedKeys;
using cpu::HeadLayout;

namespace {

// Blocks of all sequences, in another order than their tokens.
struct Cache {
  Cache(const HeadLayout& layout, std::int64_t tokens, std::int64_t block_size)
      : each((tokens + block_size - 1) / block_size),
        size(block_size),
        values(static_cast<std::size_t>(layout.sequences * each),
               std::vector<float>(static_cast<std::size_t>(cpu::block_elements(layout, block_size)),
                                  -7)) {
    for (std::size_t i = values.size(); i-- > 0;) table.push_back(values[i].data());
  }
  CachedKeys at(std::int64_t before) const { return {table, each, size, before}; }
  std::int64_t each, size;
  std::vector<std::vector<float>> values;
  std::vector<float*> table;
};

std::vector<float> normals(std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  cpu::normals(1, 2, 0, values);
  return values;
}

}  // namespace

TEST_CASE("tokens one by one attend as flash attention of all of them does") {
  const HeadLayout whole{2, 11, 6, 2, 8}, one{2, 1, 6, 2, 8};
  const auto qkv = normals(whole.tokens() * whole.columns());
  std::vector<float> context(static_cast<std::size_t>(whole.tokens() * whole.context_columns()));
  std::vector<float> log_sum(static_cast<std::size_t>(whole.tokens() * whole.heads));
  cpu::flash_attention_forward(
      {.sequences = 2, .s = 11, .heads = 6, .kv_heads = 2, .head_dim = 8, .causal_skip = true}, qkv,
      context, log_sum);
  const Cache cache(whole, 11, 4);
  for (std::int64_t position = 0; position < 11; ++position) {
    std::vector<float> rows;
    for (const std::int64_t sequence : {0, 1}) {
      const auto from = qkv.begin() + (sequence * 11 + position) * whole.columns();
      rows.insert(rows.end(), from, from + whole.columns());
    }
    std::vector<float> out(static_cast<std::size_t>(2 * whole.context_columns()));
    cpu::append_to_cache(one, cache.at(position), rows);
    cpu::cached_attention(one, cache.at(position), rows, out);
    for (std::int64_t i = 0; i < 2 * whole.context_columns(); ++i) {
      const std::int64_t row = i / whole.context_columns() * 11 + position;
      const auto expected = context[static_cast<std::size_t>(row * whole.context_columns() +
                                                             i % whole.context_columns())];
      CHECK(out[static_cast<std::size_t>(i)] == doctest::Approx(expected).epsilon(1e-5));
    }
  }
}

TEST_CASE("several tokens at once attend to what is cached and to those before them") {
  const HeadLayout whole{1, 9, 2, 1, 4}, first{1, 5, 2, 1, 4}, rest{1, 4, 2, 1, 4};
  const auto qkv = normals(whole.tokens() * whole.columns());
  const Cache all(whole, 9, 4), apart(whole, 9, 4);
  std::vector<float> expected(72), out(32);
  cpu::append_to_cache(whole, all.at(0), qkv);
  cpu::cached_attention(whole, all.at(0), qkv, expected);
  const auto head = std::span(qkv).first(80), tail = std::span(qkv).subspan(80);
  cpu::append_to_cache(first, apart.at(0), head);
  cpu::append_to_cache(rest, apart.at(5), tail);
  cpu::cached_attention(rest, apart.at(5), tail, out);
  CHECK(std::equal(out.begin(), out.end(), expected.begin() + 40));
  CHECK(apart.values == all.values);
}

TEST_CASE("a cache without room is refused") {
  const HeadLayout layout{1, 5, 2, 1, 4};
  const auto qkv = normals(layout.tokens() * layout.columns());
  const Cache cache(layout, 4, 4);
  CHECK_THROWS_AS(cpu::append_to_cache(layout, cache.at(0), qkv), std::invalid_argument);
  CHECK_THROWS_AS(cpu::append_to_cache({1, 4, 2, 1, 4}, cache.at(0), qkv), std::invalid_argument);
}

}  // namespace cached_attention_test
