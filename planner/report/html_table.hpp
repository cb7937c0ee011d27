// Tables and pages of HTML: self-contained, light and dark, no script.
#pragma once

#include <string>

#include "planner/report/table.hpp"

namespace planner {

// A row whose first cell is "all runs", "all groups" or "all workloads" is a sum.
std::string table_html(const Table& table);

// A whole page; `title` is text, `body` HTML that follows the heading.
std::string html_page(const std::string& title, const std::string& body);

}  // namespace planner
