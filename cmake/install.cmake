# What `cmake --install` puts where: both libraries, the public headers, the files find_package(wirecall) reads, and
# the command if it was built, with its manual page and what makes shells complete its words.
include(CMakePackageConfigHelpers)

install(TARGETS wirecall_core wirecall EXPORT wirecall-targets)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/wirecall DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.hpp"
        PATTERN "protobuf" EXCLUDE PATTERN "protobuf.hpp" EXCLUDE)
if(TARGET wirecall_module)
  install(TARGETS wirecall_c_static wirecall_module EXPORT wirecall-targets)
endif()
if(TARGET wirecall_c)
  install(TARGETS wirecall_c)
  install(FILES ${PROJECT_SOURCE_DIR}/include/wirecall.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  # Written when it is installed: only then is the prefix known.
  install(CODE "set(PROJECT_VERSION ${PROJECT_VERSION})
    set(CMAKE_INSTALL_LIBDIR ${CMAKE_INSTALL_LIBDIR})
    set(CMAKE_INSTALL_INCLUDEDIR ${CMAKE_INSTALL_INCLUDEDIR})
    configure_file(${CMAKE_CURRENT_LIST_DIR}/wirecall-c.pc.in ${PROJECT_BINARY_DIR}/wirecall-c.pc @ONLY)")
  install(FILES ${PROJECT_BINARY_DIR}/wirecall-c.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
if(TARGET wirecall_protobuf)
  install(TARGETS wirecall_protobuf EXPORT wirecall-protobuf-targets)
  install(FILES ${PROJECT_SOURCE_DIR}/include/wirecall/protobuf.hpp
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/wirecall)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/wirecall/protobuf
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/wirecall)
endif()
if(TARGET wirecall_tool)
  install(TARGETS wirecall_tool)
  # The command prints them itself, so it has to run here.
  if(NOT CMAKE_CROSSCOMPILING AND NOT WIRECALL_SANITIZE)
    set(texts_dir ${PROJECT_BINARY_DIR}/texts)
    file(MAKE_DIRECTORY ${texts_dir})
    add_custom_command(TARGET wirecall_tool POST_BUILD
      COMMAND $<TARGET_FILE:wirecall_tool> man > ${texts_dir}/wirecall.1
      COMMAND $<TARGET_FILE:wirecall_tool> completion bash > ${texts_dir}/wirecall
      COMMAND $<TARGET_FILE:wirecall_tool> completion zsh > ${texts_dir}/_wirecall
      COMMAND $<TARGET_FILE:wirecall_tool> completion fish > ${texts_dir}/wirecall.fish
      VERBATIM)
    install(FILES ${texts_dir}/wirecall.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    install(FILES ${texts_dir}/wirecall DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${texts_dir}/_wirecall DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
    install(FILES ${texts_dir}/wirecall.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  endif()
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/wirecall)
install(EXPORT wirecall-targets NAMESPACE wirecall:: DESTINATION ${package_dir})
if(TARGET wirecall_protobuf)
  install(EXPORT wirecall-protobuf-targets NAMESPACE wirecall:: DESTINATION ${package_dir})
endif()
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/wirecall-config.cmake.in wirecall-config.cmake
                              INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the interface, so only the same minor version is compatible.
write_basic_package_version_file(wirecall-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/wirecall-config.cmake ${PROJECT_BINARY_DIR}/wirecall-config-version.cmake
        DESTINATION ${package_dir})
