# find_package(shardplan CONFIG) gives shardplan::planner, to be included as "shardplan/shardplan.hpp", and what it plans with,
# shardplan::costmodel, as "costmodel/costmodel.hpp".
include(CMakeFindDependencyMacro)
find_dependency(fmt 9 CONFIG)
find_dependency(yaml-cpp 0.7 CONFIG)
find_dependency(nlohmann_json 3.11 CONFIG)
find_dependency(Boost 1.74 COMPONENTS program_options)
# What reads traces, where it was built with them; the targets name them then.
find_package(ZLIB QUIET)
find_package(SQLite3 QUIET)
include(${CMAKE_CURRENT_LIST_DIR}/shardplanTargets.cmake)
