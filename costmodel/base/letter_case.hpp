// Letters of texts whose case makes no difference.
#pragma once

#include <string>

namespace costmodel {

// With ASCII's letters in lower case.
std::string lower_case(std::string text);

}  // namespace costmodel
