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
