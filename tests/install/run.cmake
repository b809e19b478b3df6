# The install test: cmake -D source_dir= -D build_dir= -D work_dir= -D generator= -D compiler= -D version= -P run.cmake
# It fails at the first command that fails.
cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "exit ${status}: ${command}\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${work_dir})
set(prefix ${work_dir}/prefix)
run(${CMAKE_COMMAND} --install ${build_dir} --prefix ${prefix})
# Where there is the command, shells complete its words and man shows its page.
if(EXISTS ${prefix}/bin/wirecall)
  foreach(file IN ITEMS man/man1/wirecall.1 bash-completion/completions/wirecall zsh/site-functions/_wirecall
                        fish/vendor_completions.d/wirecall.fish)
    file(SIZE ${prefix}/share/${file} bytes)
    if(bytes LESS 1000)
      message(FATAL_ERROR "share/${file} has ${bytes} bytes")
    endif()
  endforeach()
endif()

set(consumer ${CMAKE_CURRENT_LIST_DIR}/consumer)
set(configure ${CMAKE_COMMAND} -G ${generator} -D CMAKE_CXX_COMPILER=${compiler} -D WANTED_VERSION=${version})
run(${configure} -S ${consumer} -B ${work_dir}/found -D CMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${work_dir}/found)
foreach(program IN ITEMS without_socket over_tcp)
  run(${work_dir}/found/${program})
endforeach()
if(EXISTS ${work_dir}/found/in_module)
  run(${work_dir}/found/in_module ${work_dir}/found/libmath.so)
endif()

# The core alone, on a system that has nothing of what the rest needs.
run(${CMAKE_COMMAND} -E env PKG_CONFIG_LIBDIR=${work_dir}/nothing ${configure} -S ${consumer} -B ${work_dir}/core
    -D CMAKE_PREFIX_PATH=${prefix} -D WANTED_COMPONENTS=core)
run(${CMAKE_COMMAND} --build ${work_dir}/core)
run(${work_dir}/core/without_socket)

# From C, by pkg-config alone.
if(EXISTS ${prefix}/include/wirecall.h)
  file(GLOB_RECURSE pc ${prefix}/wirecall-c.pc)
  cmake_path(GET pc PARENT_PATH pc_dir)
  find_program(C_COMPILER NAMES cc gcc clang REQUIRED)
  set(pkg_config ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${pc_dir} pkg-config)
  execute_process(COMMAND ${pkg_config} --cflags --libs wirecall-c
                  OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${pkg_config} --variable=libdir wirecall-c
                  OUTPUT_VARIABLE libdir OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  run(${C_COMPILER} -std=c99 -pedantic -Wall -Werror ${consumer}/in_c.c -o ${work_dir}/in_c ${flags} -Wl,-rpath,${libdir})
  run(${work_dir}/in_c)
endif()

# The component for protobuf, where it has been built.
file(GLOB_RECURSE with_protobuf ${prefix}/libwirecall-protobuf.*)
if(with_protobuf)
  run(${configure} -S ${consumer} -B ${work_dir}/protobuf -D CMAKE_PREFIX_PATH=${prefix} -D WANTED_COMPONENTS=protobuf)
  run(${CMAKE_COMMAND} --build ${work_dir}/protobuf --target with_protobuf)
  run(${work_dir}/protobuf/with_protobuf)
endif()

# As a part of another project: the libraries only, no test, tool or install rule of ours.
run(${configure} -S ${consumer} -B ${work_dir}/subproject -D WIRECALL_SOURCE_DIR=${source_dir})
