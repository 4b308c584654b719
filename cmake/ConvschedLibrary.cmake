# The shared library (public API only), the command, install targets, pkg-config and CMake package.
add_library(convsched SHARED ${PROJECT_SOURCE_DIR}/cmake/empty.c)
set_target_properties(convsched PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0)
target_link_libraries(convsched PRIVATE -Wl,--whole-archive cs_runtime cs_graph cs_onnx cs_base -Wl,--no-whole-archive
                      cs_runtime)
target_include_directories(convsched PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

file(GLOB cs_cli_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cli/*.c)
if(cs_cli_sources)
  add_executable(convsched_command ${cs_cli_sources})
  set_target_properties(convsched_command PROPERTIES OUTPUT_NAME convsched
                        INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  target_link_libraries(convsched_command PRIVATE convsched cs_base cs_flags PkgConfig::ZLIB)
  set(cs_generated ${PROJECT_BINARY_DIR}/generated)
  add_custom_target(cs_commit BYPRODUCTS ${cs_generated}/commit.h
                    COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DOUT=${cs_generated}/commit.h
                            -P ${PROJECT_SOURCE_DIR}/cmake/WriteCommit.cmake)
  add_dependencies(convsched_command cs_commit)
  target_include_directories(convsched_command PRIVATE ${cs_generated})
  # Man pages: the command tells them of itself.
  set(CS_MAN_DIR ${PROJECT_BINARY_DIR}/man/man1)
  add_custom_command(OUTPUT ${CS_MAN_DIR}/convsched.1
                     COMMAND ${CMAKE_COMMAND} -E rm -rf ${CS_MAN_DIR}
                     COMMAND convsched_command --man-pages ${CS_MAN_DIR}
                     DEPENDS convsched_command COMMENT "Man pages")
  add_custom_target(cs_man ALL DEPENDS ${CS_MAN_DIR}/convsched.1)
  install(TARGETS convsched_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# The example: public API only.
add_executable(classify ${PROJECT_SOURCE_DIR}/examples/classify.c)
target_link_libraries(classify PRIVATE convsched)
if(CS_SANITIZE)
  target_link_options(classify PRIVATE -fsanitize=${CS_SANITIZE})
endif()

# The yardstick of start-up: a bare cuDNN program that loads a plan's engines.
if(CS_HAVE_CUDA)
  add_executable(bare_load ${PROJECT_SOURCE_DIR}/bench/bare_load.c)
  target_link_libraries(bare_load PRIVATE cs_flags cs_cudart cs_cudnn PkgConfig::JANSSON)
endif()

include(ConvschedInstall)
