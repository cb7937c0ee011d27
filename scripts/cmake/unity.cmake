# How the compiler is spared work.
#
# unity_by_folder(<target>): where CMAKE_UNITY_BUILD is on, the sources of a folder are compiled as one, so that they read
# their headers once. By folder and not by number, so that a new file moves no other into another batch.
function(unity_by_folder target)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET folder FILENAME folder)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP "${folder}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()

# precompiled_headers(<target> [<header>...]): a target that reads the standard library, {fmt} and these headers once.
# precompile_headers(<target> <other>): takes what that one has read. GCC asks that both have the same sanitizers, and that
# both or neither are compiled at -O0. Every source includes what it needs all the same: `dev` compiles it without.
function(precompiled_headers target)
  file(CONFIGURE OUTPUT ${target}.cpp CONTENT "")
  add_library(${target} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${target}.cpp)
  target_link_libraries(${target} PRIVATE fmt::fmt)
  target_precompile_headers(${target} PRIVATE
    <algorithm> <array> <cmath> <cstdint> <fstream> <functional> <limits> <map> <memory> <numeric> <optional>
    <ranges> <set> <span> <sstream> <string> <string_view> <unordered_map> <utility> <variant> <vector>
    <fmt/format.h> ${ARGN})
endfunction()

function(precompile_headers target other)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_precompile_headers(${target} REUSE_FROM ${other})
  endif()
endfunction()

# compile_quickly(<target>): for sources that write texts or are tests, which the machine reads once for each time it runs
# them. -Og takes the compiler 0.56 of the time of -O2 (GCC 12, planner/frameworks: 14.2 for 25.5 CPU-seconds).
function(compile_quickly target)
  target_compile_options(${target} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-Og>)
endfunction()
