# Install rules: header, shared library, command, models and schema, pkg-config and CMake package
# files, man pages, completion. The installed tree can be moved as a whole.
include(CMakePackageConfigHelpers)

set(CS_MODELS_DIR ${CMAKE_INSTALL_DATADIR}/convsched/models)
# Libraries found outside the system's paths (cuDNN in a Python wheel) stay found.
set_target_properties(convsched PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS convsched EXPORT convschedTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/convsched DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/models/ DESTINATION ${CS_MODELS_DIR} FILES_MATCHING PATTERN "*.json")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/schema DESTINATION ${CMAKE_INSTALL_DATADIR}/convsched
        FILES_MATCHING PATTERN "*.json")
if(TARGET convsched_command)
  install(DIRECTORY ${CS_MAN_DIR}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN "*.1")
  install(FILES ${PROJECT_SOURCE_DIR}/completions/convsched.bash RENAME convsched
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${PROJECT_SOURCE_DIR}/completions/_convsched DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(cs_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/convsched)
install(EXPORT convschedTargets NAMESPACE convsched:: DESTINATION ${cs_package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/convschedConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/convschedConfig.cmake
                              INSTALL_DESTINATION ${cs_package_dir} PATH_VARS CS_MODELS_DIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/convschedConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/convschedConfig.cmake ${PROJECT_BINARY_DIR}/convschedConfigVersion.cmake
        DESTINATION ${cs_package_dir})

# pkg-config: the prefix is found from the place of the file itself.
file(RELATIVE_PATH CS_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" CS_PC_PREFIX ${CS_PC_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/cmake/convsched.pc.in ${PROJECT_BINARY_DIR}/convsched.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/convsched.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
