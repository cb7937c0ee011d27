# Installs the build into a fresh prefix, then builds and runs a project that knows nothing but that prefix.
# Given: BUILD, CONSUMER, COMPILER, GENERATOR.
set(prefix ${BUILD}/package/prefix)
set(consumer_build ${BUILD}/package/consumer)
file(REMOVE_RECURSE ${prefix} ${consumer_build})

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
run(${CMAKE_COMMAND} -S ${CONSUMER} -B ${consumer_build} -G ${GENERATOR}
    -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${consumer_build})
run(${consumer_build}/consumer)

run(${prefix}/bin/shardplan --version)
if(NOT EXISTS ${prefix}/share/shardplan/configs/models)
  message(FATAL_ERROR "the configs were not installed")
endif()
