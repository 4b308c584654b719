# Finds the CUDA toolkit (nvcc, cudart, the headers of CUPTI and cuBLAS) and cuDNN 9: hints (CUDAToolkit_ROOT,
# CUDNN_ROOT, CUPTI_ROOT), system paths, /usr/local/cuda, pip's nvidia/… wheel folders. Sets
# CS_HAVE_CUDA and, where found, targets cs_cudart, cs_cudnn, cs_cupti, and CS_NVTX_INCLUDE. One clear line says what came
# of it. The libraries of CUPTI and cuBLASLt are loaded at run time, when first needed, and never linked.
set(CS_HAVE_CUDA FALSE)
if(CS_CUDA STREQUAL "off")
  message(STATUS "CUDA backend: left out (CS_CUDA=off)")
  return()
endif()

# pip's wheels put the toolkit under site-packages/nvidia/{cu13,cudnn,cuda_cupti,…}.
set(cs_wheel_roots "")
find_program(CS_PYTHON NAMES python3)
if(CS_PYTHON)
  execute_process(
    COMMAND ${CS_PYTHON} -c
            "import glob,site,sys;print(';'.join(sorted({d for p in site.getsitepackages()+[site.getusersitepackages()]+sys.path if p for d in glob.glob(p+'/nvidia/*/')})))"
    OUTPUT_VARIABLE cs_wheel_roots OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()

set(cs_cuda_roots ${CUDAToolkit_ROOT} $ENV{CUDAToolkit_ROOT} $ENV{CUDA_HOME} $ENV{CUDA_PATH}
    /usr/local/cuda ${cs_wheel_roots})
find_program(CS_NVCC nvcc HINTS ${cs_cuda_roots} PATH_SUFFIXES bin)
if(CS_NVCC)
  get_filename_component(cs_nvcc_real ${CS_NVCC} REALPATH)
  get_filename_component(cs_nvcc_root ${cs_nvcc_real}/../.. ABSOLUTE)
  list(PREPEND cs_cuda_roots ${cs_nvcc_root})
endif()
set(cs_inc include targets/x86_64-linux/include extras/CUPTI/include)
set(cs_lib lib64 lib targets/x86_64-linux/lib extras/CUPTI/lib64)
find_path(CS_CUDA_INCLUDE cuda_runtime_api.h HINTS ${cs_cuda_roots} PATH_SUFFIXES ${cs_inc})
find_library(CS_CUDART NAMES cudart libcudart.so.13 libcudart.so.12 HINTS ${cs_cuda_roots} PATH_SUFFIXES ${cs_lib})
find_path(CS_CUPTI_INCLUDE cupti_range_profiler.h HINTS ${CUPTI_ROOT} $ENV{CUPTI_ROOT} ${cs_cuda_roots} PATH_SUFFIXES ${cs_inc})
find_library(CS_CUPTI NAMES cupti libcupti.so.13 libcupti.so.12 HINTS ${CUPTI_ROOT} $ENV{CUPTI_ROOT} ${cs_cuda_roots}
             PATH_SUFFIXES ${cs_lib})
find_path(CS_CUBLASLT_INCLUDE cublasLt.h HINTS ${cs_cuda_roots} PATH_SUFFIXES ${cs_inc})
# Header-only; profilers bring what is behind it. Left out where it is not found.
find_path(CS_NVTX_INCLUDE nvtx3/nvToolsExtCudaRt.h HINTS ${cs_cuda_roots} PATH_SUFFIXES ${cs_inc})
find_path(CS_CUDNN_INCLUDE cudnn_backend.h HINTS ${CUDNN_ROOT} $ENV{CUDNN_ROOT} ${cs_wheel_roots} ${cs_cuda_roots}
          PATH_SUFFIXES ${cs_inc})
find_library(CS_CUDNN NAMES cudnn libcudnn.so.9 HINTS ${CUDNN_ROOT} $ENV{CUDNN_ROOT} ${cs_wheel_roots} ${cs_cuda_roots}
             PATH_SUFFIXES ${cs_lib})

set(cs_missing "")
foreach(pair "nvcc|CS_NVCC" "cudart|CS_CUDART" "CUDA headers|CS_CUDA_INCLUDE" "cuDNN library|CS_CUDNN"
        "cuDNN headers|CS_CUDNN_INCLUDE" "CUPTI headers|CS_CUPTI_INCLUDE" "cuBLAS headers|CS_CUBLASLT_INCLUDE")
  string(REPLACE "|" ";" pair ${pair})
  list(GET pair 0 what)
  list(GET pair 1 variable)
  if(NOT ${variable})
    list(APPEND cs_missing ${what})
  endif()
endforeach()
if(cs_missing)
  string(REPLACE ";" ", " cs_missing "${cs_missing}")
  if(CS_CUDA STREQUAL "on")
    message(FATAL_ERROR "CUDA backend: not found: ${cs_missing}")
  endif()
  message(STATUS "CUDA backend: left out; not found: ${cs_missing} (hints: CUDAToolkit_ROOT, CUDNN_ROOT, CUPTI_ROOT)")
  return()
endif()

set(CMAKE_CUDA_COMPILER ${CS_NVCC})
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90a-real 90-virtual)
endif()
enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
foreach(part cudart cudnn)
  string(TOUPPER ${part} upper)
  add_library(cs_${part} INTERFACE)
  target_link_libraries(cs_${part} INTERFACE ${CS_${upper}})
endforeach()
add_library(cs_cupti INTERFACE)
target_link_libraries(cs_cupti INTERFACE ${CMAKE_DL_LIBS})
if(CS_CUPTI)
  target_compile_definitions(cs_cupti INTERFACE CS_CUPTI_BUILD_PATH="${CS_CUPTI}")
endif()
# cupti_profiler_host.h includes C++'s <string> and uses nothing of it: C finds an empty one.
file(WRITE ${PROJECT_BINARY_DIR}/cupti_for_c/string "")
target_include_directories(cs_cupti INTERFACE $<$<COMPILE_LANGUAGE:C>:${PROJECT_BINARY_DIR}/cupti_for_c>)
target_include_directories(cs_cudart SYSTEM INTERFACE ${CS_CUDA_INCLUDE} ${CS_CUBLASLT_INCLUDE})
target_include_directories(cs_cudnn SYSTEM INTERFACE ${CS_CUDNN_INCLUDE})
target_include_directories(cs_cupti SYSTEM INTERFACE ${CS_CUPTI_INCLUDE})
set(CS_HAVE_CUDA TRUE)
message(STATUS "CUDA backend: nvcc ${CMAKE_CUDA_COMPILER_VERSION}, cuDNN ${CS_CUDNN}, CUPTI ${CS_CUPTI}, NVTX ${CS_NVTX_INCLUDE}")
