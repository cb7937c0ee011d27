// Number of parameters of a model.
#pragma once

#include "costmodel/model/model_spec.hpp"

namespace costmodel {

// Parameters of the complete model, with the vocabulary unpadded. Exact for every kind; for the gpt
// kind Narayanan et al. 2021 (arXiv:2104.04473), eq. 2, approximate it as 12·l·h²(1 + 13/12h + (V +
// s)/12lh).
double parameter_count(const ModelSpec& model);
// The same with what no optimizer trains but a checkpoint stores, a router's bias for each expert
// (DeepSeek-V3, arXiv:2412.19437, section 2.1.2; e_score_correction_bias in transformers), and with
// vectors of a tower's layers that no operator here has.
double published_parameter_count(const ModelSpec& model);
// Of multi-token prediction, which parameter_count is without: its layers, and before each two
// norms and a projection of 2h to h (DeepSeek-V3, arXiv:2412.19437, equation 21).
double mtp_parameter_count(const ModelSpec& model);
// The parameters that one token uses: top_k and the shared experts of each layer instead of all.
double active_parameter_count(const ModelSpec& model);
double parameters_per_layer(const ModelSpec& model);      // of a dense layer or an encoder layer
double parameters_per_moe_layer(const ModelSpec& model);  // of a layer with experts
double parameters_per_decoder_layer(const ModelSpec& model);  // in encoder-decoder models

}  // namespace costmodel
