# How every file is compiled: C++20, plain IEEE arithmetic, many warnings, and sanitizers when asked for.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release or Debug" FORCE)
endif()

# The same input must give the same bytes on every machine: no fused multiply-adds that only some processors have.
add_compile_options(
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>
  "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wnon-virtual-dtor;-Wold-style-cast>"
  "$<$<COMPILE_LANGUAGE:CXX>:-Wimplicit-fallthrough;-Wsuggest-override;-Wdate-time>"
  # Designated initialisers leave fields at their defaults on purpose.
  $<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)  # false alarms in std::string, GCC bug 105651
endif()
if(SHARDPLAN_WERROR)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()

if(SHARDPLAN_SANITIZE)
  set(sanitize -fsanitize=${SHARDPLAN_SANITIZE} -fno-sanitize-recover=all)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${sanitize};-fno-omit-frame-pointer>")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)  # false alarms in <regex>, GCC bug 105562
  endif()
  add_link_options(${sanitize})
endif()

# What a release does against a fault that input might find: canaries on stacks, checked copies, jumps that land where the
# processor expects them, no writable table of functions. tests/package/hardened_test holds the programs to it.
if(NOT SHARDPLAN_SANITIZE)
  # What goes into a shared library is position-independent by its own property; -fPIC for all would keep functions from being inlined.
  add_compile_options($<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<BOOL:$<TARGET_PROPERTY:POSITION_INDEPENDENT_CODE>>>>:-fPIE>)
  add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-pie>)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fstack-protector-strong> $<$<COMPILE_LANGUAGE:CXX>:-fstack-clash-protection>)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fcf-protection=full>)
  endif()
  add_compile_options("$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
  add_link_options(LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack)
endif()

# for_shared_libraries(<target>...): sources that the Python module is made of too, compiled once for both. Functions are inlined
# all the same, because none is replaced from outside.
function(for_shared_libraries)
  set_target_properties(${ARGN} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    foreach(target IN LISTS ARGN)
      target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-semantic-interposition>)
    endforeach()
  endif()
endfunction()

# without_pointer_checks(<target>): for sources that hold no casts of pointers nor memory of their own. Only such casts make
# misaligned pointers or ones of a wrong class; null and stray ones the address sanitizer finds where they are used. The checks
# precede every use of a pointer, and without them GCC 12 takes 0.65 of the time (costmodel/estimate: 30 for 46 CPU-seconds,
# 1.7 for 2.8 MB). Arithmetic, casts of numbers, shifts, enumerations and bounds of arrays are checked all the same.
function(without_pointer_checks target)
  if(SHARDPLAN_SANITIZE MATCHES "undefined")
    target_compile_options(${target} PRIVATE -fno-sanitize=null,alignment,vptr,object-size,pointer-overflow)
  endif()
endfunction()

find_program(CCACHE ccache)
if(CCACHE)
  foreach(language CXX CUDA)
    if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER ${CCACHE})
    endif()
  endforeach()
endif()
