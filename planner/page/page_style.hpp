// What the head of a report's page holds besides the style of all pages: that nothing may be
// loaded, and the colours of its pictures, which tell apart without red and green (Okabe and Ito
// 2008, "Color Universal Design").
#pragma once

#include <string_view>

namespace planner {

std::string_view report_head();

}  // namespace planner
