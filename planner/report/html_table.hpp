// Tables and pages of HTML: self-contained, light and dark, no script of their own.
#pragma once

#include <string>

#include "planner/report/table.hpp"

namespace planner {

// A row whose first cell is "all runs", "all groups" or "all workloads" is a sum.
std::string table_html(const Table& table);

// The same of cells that are HTML already; titles are text.
std::string table_of_html(const Table& table);

// A whole page; `title` is text, `body` HTML that follows the heading, `head` what else stands in
// the page's head: more styles.
std::string html_page(const std::string& title, const std::string& body,
                      const std::string& head = "");

}  // namespace planner
