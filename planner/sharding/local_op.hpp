// An operator cut over the devices of a mesh axis: what a strategy of intra-operator parallelism
// makes of it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "costmodel/operators/op.hpp"

namespace planner {

// What the devices of an axis divide among themselves. whole: nothing, all do the same. rows: the
// tokens (attention: the sequences). channels: columns that no other column needs: heads, or those
// of an element-wise operator. columns, inner: of a product's matrix, its output columns or its
// input rows (Shoeybi et al. 2019, arXiv:1909.08053, section 3: column- and row-parallel);
// gathered_columns gathers its input's tokens first and inner_scattered leaves the sum cut by
// tokens (Korthikanti et al. 2022, arXiv:2205.05198, section 4.2.2). Of a token table, `columns`
// are those of the hidden vector and `inner` the vocabulary. experts: of a mixture of them.
enum class Split {
  whole,
  rows,
  channels,
  columns,
  gathered_columns,
  inner,
  inner_scattered,
  experts
};
inline constexpr std::array<std::string_view, 8> split_names{
    "replicated", "rows",  "channels", "columns", "columns of gathered rows",
    "inner",      "inner", "experts"};
inline constexpr std::array all_splits{Split::whole,
                                       Split::rows,
                                       Split::channels,
                                       Split::columns,
                                       Split::gathered_columns,
                                       Split::inner,
                                       Split::inner_scattered,
                                       Split::experts};

// An operator with what its numbers do not say: of how many sequences and heads its rows are made.
struct LocalOp {
  costmodel::Op op;
  std::int64_t sequences = 1, heads = 1;
  bool attention_core = false;  // rows are (sequence, head, token), not tokens
  bool of_experts = false;      // rows are those of experts' tokens
  bool gated_norm = false;      // over the channels of each group by itself
};

// One of `ranks` equal parts; none where the operator cannot be divided so.
std::optional<LocalOp> cut(const LocalOp& whole, Split split, int ranks);

// Whether it has a matrix or table, so that its weights are worth sharding.
bool has_matrix(const costmodel::Op& op);

}  // namespace planner
