# gRPC for the benchmarks that measure it beside: WIRECALL_HAS_GRPC, and wirecall_link_grpc.
# Found by hand: Debian's configuration for CMake wants one of protobuf that is not there, and pkg-config takes many
# minutes to walk through Abseil.
find_path(GRPC_INCLUDE grpcpp/grpcpp.h)
find_library(GRPCPP_LIBRARY grpc++)
find_library(GRPC_LIBRARY grpc)
find_library(GPR_LIBRARY gpr)
find_library(PROTOBUF_LIBRARY protobuf)
find_program(GRPC_PLUGIN grpc_cpp_plugin)
find_program(PROTOC protoc)
set(WIRECALL_HAS_GRPC OFF)
if(GRPC_INCLUDE AND GRPCPP_LIBRARY AND GRPC_LIBRARY AND GPR_LIBRARY AND PROTOBUF_LIBRARY AND GRPC_PLUGIN AND PROTOC)
  set(WIRECALL_HAS_GRPC ON)
endif()

# Adds what the compiler of protobuf makes of `proto`, a file of the current folder, with its services for gRPC.
function(wirecall_link_grpc target proto)
  cmake_path(GET proto STEM stem)
  cmake_path(GET proto PARENT_PATH folder)
  set(made ${CMAKE_CURRENT_BINARY_DIR}/${stem}.pb.cc ${CMAKE_CURRENT_BINARY_DIR}/${stem}.grpc.pb.cc)
  add_custom_command(
    OUTPUT ${made} ${CMAKE_CURRENT_BINARY_DIR}/${stem}.pb.h ${CMAKE_CURRENT_BINARY_DIR}/${stem}.grpc.pb.h
    COMMAND ${PROTOC} --plugin=protoc-gen-grpc=${GRPC_PLUGIN} --cpp_out=${CMAKE_CURRENT_BINARY_DIR}
            --grpc_out=${CMAKE_CURRENT_BINARY_DIR} -I ${CMAKE_CURRENT_SOURCE_DIR}/${folder} ${stem}.proto
    DEPENDS ${proto})
  set_source_files_properties(${made} PROPERTIES COMPILE_OPTIONS -w)
  target_sources(${target} PRIVATE ${made})
  target_include_directories(${target} SYSTEM PRIVATE ${CMAKE_CURRENT_BINARY_DIR} ${GRPC_INCLUDE})
  target_link_libraries(${target} PRIVATE ${GRPCPP_LIBRARY} ${GRPC_LIBRARY} ${GPR_LIBRARY} ${PROTOBUF_LIBRARY})
endfunction()
