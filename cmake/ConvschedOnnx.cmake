# The ONNX importer: protobuf-c (library and compiler) and the schema that libonnx-dev carries, from
# which C is generated in the build folder. CS_ONNX: auto (built where found), on (an error if not),
# off. Sets CS_HAVE_ONNX and, where found, target cs_onnx_proto. One clear line says what came of it.
set(CS_HAVE_ONNX FALSE)
set(cs_onnx_missing "")
if(CS_ONNX STREQUAL "off")
  message(STATUS "ONNX import: left out (CS_ONNX=off)")
else()
  pkg_check_modules(PROTOBUF_C IMPORTED_TARGET libprotobuf-c>=1.3)
  find_program(CS_PROTOC_C NAMES protoc-c)
  find_path(CS_ONNX_SCHEMA_DIR onnx/onnx.proto DOC "The folder that holds onnx/onnx.proto")
  if(NOT PROTOBUF_C_FOUND)
    list(APPEND cs_onnx_missing "protobuf-c (libprotobuf-c-dev)")
  endif()
  if(NOT CS_PROTOC_C)
    list(APPEND cs_onnx_missing "protoc-c (protobuf-c-compiler)")
  endif()
  if(NOT CS_ONNX_SCHEMA_DIR)
    list(APPEND cs_onnx_missing "onnx/onnx.proto (libonnx-dev)")
  endif()
  if(cs_onnx_missing)
    list(JOIN cs_onnx_missing ", " cs_onnx_missing)
    if(CS_ONNX STREQUAL "on")
      message(FATAL_ERROR "ONNX import: not found: ${cs_onnx_missing}")
    endif()
    message(STATUS "ONNX import: left out; not found: ${cs_onnx_missing}")
  else()
    set(CS_HAVE_ONNX TRUE)
    message(STATUS "ONNX import: protobuf-c ${PROTOBUF_C_VERSION}, schema ${CS_ONNX_SCHEMA_DIR}/onnx/onnx.proto")
  endif()
endif()

if(CS_HAVE_ONNX)
  set(cs_onnx_generated ${PROJECT_BINARY_DIR}/generated/onnx)
  file(MAKE_DIRECTORY ${cs_onnx_generated})
  add_custom_command(
    OUTPUT ${cs_onnx_generated}/onnx.pb-c.c ${cs_onnx_generated}/onnx.pb-c.h
    COMMAND ${CS_PROTOC_C} --proto_path=${CS_ONNX_SCHEMA_DIR}/onnx --c_out=${cs_onnx_generated} onnx.proto
    DEPENDS ${CS_ONNX_SCHEMA_DIR}/onnx/onnx.proto
    COMMENT "Generating C from onnx.proto")
  # Not ours: compiled without our warnings.
  add_library(cs_onnx_proto STATIC ${cs_onnx_generated}/onnx.pb-c.c)
  target_include_directories(cs_onnx_proto SYSTEM PUBLIC ${cs_onnx_generated})
  target_link_libraries(cs_onnx_proto PUBLIC PkgConfig::PROTOBUF_C)
  if(CS_SANITIZE)
    target_compile_options(cs_onnx_proto PRIVATE -fsanitize=${CS_SANITIZE} -fno-omit-frame-pointer)
  endif()
endif()
