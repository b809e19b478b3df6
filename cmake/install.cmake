# What `cmake --install` puts where: both libraries, the public headers, the files find_package(wirecall) reads, and
# the command if it was built.
include(CMakePackageConfigHelpers)

install(TARGETS wirecall_core wirecall EXPORT wirecall-targets)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/wirecall DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.hpp")
if(TARGET wirecall_tool)
  install(TARGETS wirecall_tool)
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/wirecall)
install(EXPORT wirecall-targets NAMESPACE wirecall:: DESTINATION ${package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/wirecall-config.cmake.in wirecall-config.cmake
                              INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the interface, so only the same minor version is compatible.
write_basic_package_version_file(wirecall-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/wirecall-config.cmake ${PROJECT_BINARY_DIR}/wirecall-config-version.cmake
        DESTINATION ${package_dir})
