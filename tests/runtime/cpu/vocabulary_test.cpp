// Embeddings and the cross-entropy: the two ends that are cut along the vocabulary.
#include <doctest/doctest.h>

#include <stdexcept>

#include "runtime/cpu/cross_entropy.hpp"
#include "runtime/cpu/embedding.hpp"
#include "tests/runtime/support/cpu_gradients.hpp"

namespace vocabulary_test {

using namespace cpu_test;
namespace cpu = runtime::cpu;

namespace {

using Ids = std::vector<std::int64_t>;

struct Loss {
  Doubles loss, dlogits;
};

// The cross-entropy of logits[rows, vocab] cut by columns over `ranks`, which reduce by hand.
template <class T>
Loss cross_entropy(std::int64_t rows, std::int64_t vocab, const Doubles& logits, const Ids& targets,
                   std::int64_t ranks, double scale) {
  const std::int64_t cols = vocab / ranks;
  const costmodel::CrossEntropy op{rows, cols, costmodel::LossKernel::flash};
  std::vector<std::vector<T>> shards(static_cast<std::size_t>(ranks));
  for (std::size_t i = 0; i < logits.size(); ++i)
    shards[i % static_cast<std::size_t>(vocab) / static_cast<std::size_t>(cols)].push_back(
        static_cast<T>(logits[i]));
  auto maximum =
      std::vector<T>(static_cast<std::size_t>(rows), -std::numeric_limits<T>::infinity());
  auto sum = zeros<T>(rows), target_logit = zeros<T>(rows), part = zeros<T>(rows),
       part_target = zeros<T>(rows), loss = unset<T>(rows);
  for (auto& shard : shards) {
    cpu::cross_entropy_row_maximum<T>(op, shard, part);
    for (std::size_t i = 0; i < part.size(); ++i) maximum[i] = std::max(maximum[i], part[i]);
  }
  std::int64_t first = 0;
  for (auto& shard : shards) {
    cpu::cross_entropy_exponentials<T>(op, shard, maximum, targets, first, shard, part,
                                       part_target);
    first += cols;
    for (std::size_t i = 0; i < part.size(); ++i) sum[i] += part[i];
    for (std::size_t i = 0; i < part.size(); ++i) target_logit[i] += part_target[i];
  }
  first = 0;
  for (auto& shard : shards) {
    cpu::cross_entropy_finish<T>(op, sum, target_logit, shard, loss);
    cpu::cross_entropy_gradient<T>(op, shard, targets, first, scale, shard);
    first += cols;
  }
  Doubles dlogits;
  for (std::int64_t i = 0; i < rows; ++i)
    for (const auto& shard : shards)
      dlogits.insert(dlogits.end(), shard.begin() + i * cols, shard.begin() + (i + 1) * cols);
  return {Doubles(loss.begin(), loss.end()), dlogits};
}

const Ids some_targets{0, 11, 3, 8, 3};

}  // namespace

TEST_CASE("the cross-entropy is minus the logarithm of the target's probability") {
  const auto logits = normals(60, 1);
  const Loss found = cross_entropy<double>(5, 12, logits, some_targets, 1, 1);
  for (std::size_t row = 0; row < 5; ++row) {
    double sum = 0;
    for (std::size_t col = 0; col < 12; ++col) sum += std::exp(logits[row * 12 + col]);
    const double target = logits[row * 12 + static_cast<std::size_t>(some_targets[row])];
    CHECK(found.loss[row] == doctest::Approx(std::log(sum) - target).epsilon(1e-13));
  }
}

TEST_CASE("the gradient of the cross-entropy is its finite differences") {
  auto logits = normals(60, 1);
  const auto dlogits = cross_entropy<double>(5, 12, logits, some_targets, 1, 0.2).dlogits;
  const auto mean = [&] {
    const auto loss = cross_entropy<double>(5, 12, logits, some_targets, 1, 0.2).loss;
    return dot(loss, Doubles(5, 0.2));
  };
  CHECK(distance(dlogits, differences(logits, mean)) < difference_bound);
}

TEST_CASE("a cross-entropy cut over ranks is that of the whole, in float as in double") {
  auto logits = normals(60, 1);
  for (double& logit : logits) logit = 20 * logit + 100;
  const Loss whole = cross_entropy<double>(5, 12, logits, some_targets, 1, 0.2);
  for (const std::int64_t ranks : {1, 2, 4}) {
    const Loss cut = cross_entropy<double>(5, 12, logits, some_targets, ranks, 0.2);
    CHECK(distance(cut.loss, whole.loss) < 1e-14);
    CHECK(distance(cut.dlogits, whole.dlogits) < 1e-14);
    const Loss narrow = cross_entropy<float>(5, 12, logits, some_targets, ranks, 0.2);
    CHECK(distance(narrow.loss, whole.loss) < float_bound);
    CHECK(distance(narrow.dlogits, whole.dlogits) < 6 * float_bound);  // logits of 100 and more
  }
}

TEST_CASE("the shards of an embedding add up to the whole, and their gradients are its rows") {
  const Ids ids{5, 0, 7, 5, 2};
  const auto table = normals(8 * 3, 1), dy = normals(15, 2);
  auto whole = unset(15), sum = zeros(15), dtable = zeros(24);
  cpu::embedding_forward<double>({5, 3, 8}, ids, 0, table, whole);
  cpu::embedding_weight_gradient<double>({5, 3, 8}, ids, 0, dy, dtable);
  for (std::size_t i = 0; i < 3; ++i) CHECK(whole[i] == table[15 + i]);
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    const auto part = std::span(table).subspan(static_cast<std::size_t>(6 * rank), 6);
    auto y = unset(15), dpart = zeros(6);
    cpu::embedding_forward<double>({5, 3, 2}, ids, 2 * rank, part, y);
    cpu::embedding_weight_gradient<double>({5, 3, 2}, ids, 2 * rank, dy, dpart);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += y[i];
    CHECK(std::equal(dpart.begin(), dpart.end(), dtable.begin() + 6 * rank));
  }
  CHECK(sum == whole);
}

TEST_CASE("the gradients of embeddings are their finite differences") {
  const Ids ids{1, 0, 1, 1, 0, 3};
  const cpu::RowPositions rows{3};
  auto table = normals(8, 1), positions = normals(6, 2);
  const auto dy = normals(12, 3);
  const auto loss = [&] {
    auto y = unset(12);
    cpu::embedding_forward<double>({6, 2, 4}, ids, 0, table, y);
    cpu::position_embedding_forward<double>({6, 2, 3}, rows, y, positions, y);
    return dot(y, dy);
  };
  auto dtable = zeros(8), dpositions = zeros(6);
  cpu::embedding_weight_gradient<double>({6, 2, 4}, ids, 0, dy, dtable);
  cpu::position_embedding_weight_gradient<double>({6, 2, 3}, rows, dy, dpositions);
  CHECK(distance(dtable, differences(table, loss)) < difference_bound);
  CHECK(distance(dpositions, differences(positions, loss)) < difference_bound);
}

TEST_CASE("positions begin again with each sequence, also in rows cut from the middle") {
  const auto table = normals(8 * 2, 1);
  const auto x = zeros(8 * 2);
  auto whole = unset(16), part = unset(6);
  cpu::position_embedding_forward<double>({8, 2, 8}, {4}, x, table, whole);
  CHECK(std::equal(whole.begin(), whole.begin() + 8, whole.begin() + 8));
  cpu::position_embedding_forward<double>({3, 2, 8}, {4, 3}, zeros(6), table, part);
  CHECK(std::equal(part.begin(), part.end(), whole.begin() + 6));
  cpu::position_embedding_forward<double>({3, 2, 8}, {3, 0, 5}, zeros(6), table, part);
  CHECK(std::equal(part.begin(), part.end(), table.begin() + 10));
  CHECK_THROWS_AS(
      cpu::position_embedding_forward<double>({3, 2, 8}, {3, 0, 6}, zeros(6), table, part),
      std::invalid_argument);
}

}  // namespace vocabulary_test
