# Finds libsodium, by which ranks over TCP prove that they belong to one run: the target shardplan_sodium. It comes without
# a CMake package.
find_path(SODIUM_INCLUDE_DIR sodium.h)
find_library(SODIUM_LIBRARY sodium)
mark_as_advanced(SODIUM_INCLUDE_DIR SODIUM_LIBRARY)
if(SODIUM_INCLUDE_DIR AND SODIUM_LIBRARY)
  add_library(shardplan_sodium INTERFACE)
  target_include_directories(shardplan_sodium SYSTEM INTERFACE ${SODIUM_INCLUDE_DIR})
  target_link_libraries(shardplan_sodium INTERFACE ${SODIUM_LIBRARY})
endif()
