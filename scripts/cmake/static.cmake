# Libraries as archives, for what is carried to other machines. Debian has no archive of {fmt}: its sources are in its headers.
find_path(fmt_headers fmt/format-inl.h REQUIRED)
add_library(fmt::fmt INTERFACE IMPORTED)
target_include_directories(fmt::fmt INTERFACE ${fmt_headers})
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY=1)

find_library(yaml_archive libyaml-cpp.a REQUIRED)
find_path(yaml_headers yaml-cpp/yaml.h REQUIRED)
add_library(yaml-cpp STATIC IMPORTED)
set_target_properties(yaml-cpp PROPERTIES IMPORTED_LOCATION ${yaml_archive} INTERFACE_INCLUDE_DIRECTORIES ${yaml_headers})

set(Boost_USE_STATIC_LIBS ON)
set(CMAKE_FIND_LIBRARY_SUFFIXES .a)  # of zlib and SQLite
