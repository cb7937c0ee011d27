// A batch's index as a page of HTML: each scenario's name leads to its own page.
#pragma once

#include <string>

#include "planner/report/table.hpp"

namespace planner {

// `index`: see index_table, for people. NAME.html lies beside the page.
std::string index_page(const Table& index);

}  // namespace planner
