/* Parallel loops of the CPU backend; plain loops in a build without OpenMP. */
#ifndef CONVSCHED_BACKEND_CPU_OMP_H_
#define CONVSCHED_BACKEND_CPU_OMP_H_

#ifdef _OPENMP
#include <omp.h>
#define CPU_PARALLEL_FOR _Pragma("omp parallel for schedule(static)")
#define CPU_SIMD _Pragma("omp simd")
#else
#define CPU_PARALLEL_FOR
#define CPU_SIMD
#endif

#endif
