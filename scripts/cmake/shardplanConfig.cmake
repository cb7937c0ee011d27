# find_package(shardplan CONFIG) gives shardplan::costmodel; include it as "costmodel/costmodel.hpp".
include(CMakeFindDependencyMacro)
find_dependency(fmt 9 CONFIG)
find_dependency(yaml-cpp 0.7 CONFIG)
find_dependency(nlohmann_json 3.11 CONFIG)
include(${CMAKE_CURRENT_LIST_DIR}/shardplanTargets.cmake)
