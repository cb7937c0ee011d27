// The local shape of an operator that is sharded over a mesh axis.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "costmodel/operators/op.hpp"

namespace planner {

// How an axis splits an operator. whole: replicated work. rows: the tokens (for attention, the
// sequences). channels: independent columns: heads, or the columns of an element-wise operator.
// columns, inner: the output columns or the input rows of a product's matrix (column- and
// row-parallel, Shoeybi et al. 2019, arXiv:1909.08053, section 3). gathered_columns: columns after
// an all-gather of the input's tokens; inner_scattered: inner with the sum reduce-scattered by
// tokens (Korthikanti et al. 2022, arXiv:2205.05198, section 4.2.2). For a token table, `columns`
// splits the hidden vector and `inner` the vocabulary. experts: the experts of a mixture. ring: the
// queries of fused attention, by tokens of a sequence; keys and values travel around the ranks
// (ring attention, Liu et al. 2023, arXiv:2310.01889).
enum class Split {
  whole,
  rows,
  channels,
  columns,
  gathered_columns,
  inner,
  inner_scattered,
  experts,
  ring
};
inline constexpr std::array<std::string_view, 9> split_names{
    "replicated", "rows",  "channels", "columns", "columns of gathered rows",
    "inner",      "inner", "experts",  "ring"};
inline constexpr std::array all_splits{Split::whole,
                                       Split::rows,
                                       Split::channels,
                                       Split::columns,
                                       Split::gathered_columns,
                                       Split::inner,
                                       Split::inner_scattered,
                                       Split::experts,
                                       Split::ring};

// An operator and what its fields do not contain: the number of sequences and heads in its rows.
struct LocalOp {
  costmodel::Op op;
  std::int64_t sequences = 1, heads = 1;
  bool attention_core = false;  // rows are (sequence, head, token), not tokens
  bool of_experts = false;      // rows are routed tokens
  bool gated_norm = false;      // normalises the channels of each group separately
};

// One of `ranks` equal parts; empty when the operator cannot be split this way.
std::optional<LocalOp> cut(const LocalOp& whole, Split split, int ranks);

// Whether it has a matrix or table, so that sharding its weights is worthwhile.
bool has_matrix(const costmodel::Op& op);

}  // namespace planner
