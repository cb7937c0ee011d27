# Finds toml++, which reads torchtitan's TOML: SHARDPLAN_WITH_TOML and the target shardplan_toml. Its headers are enough;
# without them everything else is built, and an import of TOML says so.
set(SHARDPLAN_WITH_TOML OFF)
find_path(TOML_INCLUDE_DIR toml++/toml.h)
mark_as_advanced(TOML_INCLUDE_DIR)
if(TOML_INCLUDE_DIR)
  add_library(shardplan_toml INTERFACE)
  target_include_directories(shardplan_toml SYSTEM INTERFACE ${TOML_INCLUDE_DIR})
  target_compile_definitions(shardplan_toml INTERFACE SHARDPLAN_WITH_TOML)
  set(SHARDPLAN_WITH_TOML ON)
  message(STATUS "toml++: ${TOML_INCLUDE_DIR}")
else()
  message(STATUS "toml++: not found")
endif()
