// Samples of unequal length in sequences of a fixed one, as supervised fine-tuning has them: each
// padded to a sequence, or several packed into one (Krell et al. 2021, arXiv:2107.02027), where a
// token attends to those of its own sample.
#pragma once

#include <cstdint>

#include "costmodel/plan/length_spec.hpp"

namespace costmodel {

struct Packing {
  LengthSpec lengths;   // of a sample; mean 0: every sequence is full and is one text
  bool packed = false;  // else a sequence has one sample and padding
  // Of a sequence, on average over many:
  double samples = 1;
  double filled = 1;    // its tokens that are a sample's, as a part of s
  double attended = 0;  // sum of l² over its samples, divided by s: the tokens of a token's own
                        // sample; 0: all of the sequence
  double spread = 0;    // the standard deviation of that between sequences
  bool any() const { return lengths.mean > 0; }
};

// Samples of these lengths, cut at `sequence` tokens; packed by first fit in an order of chance, as
// NeMo and Megatron-Bridge do (first_fit_shuffle, nemo/utils/sequence_packing_utils.py). The same
// on every machine.
Packing packing_of(const LengthSpec& lengths, std::int64_t sequence, bool packed);

// By how much the attention of the rank with the most of it exceeds the mean, of `ranks` that take
// so many sequences each before they wait for each other: the spread of a sum of them times the
// expected maximum of as many normal variables (Blom 1958), at most what sequences of one sample
// would have.
double longest_excess(const Packing& packing, std::int64_t sequence, std::int64_t ranks,
                      double sequences);

}  // namespace costmodel
