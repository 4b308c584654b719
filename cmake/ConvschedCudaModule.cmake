# The CUDA backend: C files and kernels (.cu). The kernels need no C++ runtime.
file(GLOB cs_cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backend/cuda/*.c
     ${PROJECT_SOURCE_DIR}/src/backend/cuda/*.cu)
if(cs_cuda_sources)
  add_library(cs_cuda STATIC ${cs_cuda_sources})
  target_compile_options(cs_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall --expt-relaxed-constexpr
    -Xcudafe --display_error_number>)
  set_target_properties(cs_cuda PROPERTIES CUDA_RUNTIME_LIBRARY Shared)
  if("${CMAKE_CUDA_ARCHITECTURES}" MATCHES "90a")
    target_compile_definitions(cs_cuda PRIVATE CS_CUDA_SM90A=1) # wgmma
  endif()
  if(CS_NVTX_INCLUDE)
    target_compile_definitions(cs_cuda PRIVATE CS_HAVE_NVTX)
    target_include_directories(cs_cuda SYSTEM PRIVATE ${CS_NVTX_INCLUDE})
  endif()
  target_link_libraries(cs_cuda PUBLIC cs_flags cs_graph cs_profiler cs_reference cs_cudart cs_cudnn cs_cupti)
endif()
