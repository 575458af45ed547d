# What `cmake --install` copies, and the package that find_package(mxjit CONFIG) finds.
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/mxjit")

install(TARGETS mxjit EXPORT mxjit RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}"
                                   LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
                                   ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY include/mxjit DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(EXPORT mxjit NAMESPACE mxjit:: FILE mxjitTargets.cmake DESTINATION "${package_dir}")
if(MXJIT_TOOL)
  set_target_properties(mxjit_tool PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  install(TARGETS mxjit_tool RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

# A static library hands its own dependencies on; a shared one has linked them.
get_target_property(type mxjit TYPE)
set(MXJIT_STATIC OFF)
if(type STREQUAL "STATIC_LIBRARY")
  set(MXJIT_STATIC ON)
endif()
configure_package_config_file(tools/cmake/mxjitConfig.cmake.in "${PROJECT_BINARY_DIR}/mxjitConfig.cmake"
                              INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/mxjitConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/mxjitConfig.cmake" "${PROJECT_BINARY_DIR}/mxjitConfigVersion.cmake"
        DESTINATION "${package_dir}")
install(FILES LICENSE README.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
