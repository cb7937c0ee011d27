// How many parameters a model has.
#pragma once

#include "costmodel/model/model_spec.hpp"

namespace costmodel {

// Parameters of the whole model, with the vocabulary as given (not padded). Narayanan et al. 2021
// (arXiv:2104.04473), eq. 2, gives 12·l·h²(1 + 13/12h + (V + s)/12lh) for the gpt kind; this is the
// exact count for every kind.
double parameter_count(const ModelSpec& model);
// Of them, what one token meets: top_k and the shared experts of each layer instead of all.
double active_parameter_count(const ModelSpec& model);
double parameters_per_layer(const ModelSpec& model);          // a dense one, or an encoder's
double parameters_per_moe_layer(const ModelSpec& model);      // one with experts
double parameters_per_decoder_layer(const ModelSpec& model);  // of an encoder-decoder model

}  // namespace costmodel
