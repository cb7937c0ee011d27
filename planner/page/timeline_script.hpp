// What moves the picture of timeline_picture: wheel, dragging, keys and buttons zoom and move it; a
// slice tells what it is.
#pragma once

#include <string_view>

namespace planner {

std::string_view timeline_script();

}  // namespace planner
