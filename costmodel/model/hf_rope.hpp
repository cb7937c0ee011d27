// The rotary positions of a Hugging Face config.json. Internal to costmodel.
#pragma once

#include "costmodel/model/hf_translation.hpp"

namespace costmodel {

// Puts their base, the part of a head that is rotated, which transformers 5 writes into a map, and
// their scaling. Leaves out the usual base and part: over the file other positions may be written.
void put_rotation(HfTranslation& file);

}  // namespace costmodel
