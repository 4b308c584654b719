/* The tiles that convolutions on the tensor cores come in. X(name, pixels, filters, tile): the name
 * is the end of a candidate's id, the tile a type of conv_mma.cuh or conv_tma.cuh. */
#ifndef CONVSCHED_BACKEND_CUDA_CONV_TILES_H_
#define CONVSCHED_BACKEND_CUDA_CONV_TILES_H_

#define CS_MMA_ID "cuda.mma.v3-"
#define CS_MMA_PROLOGUE_ID "cuda.mma_pre.v1-"
#define CS_TMA_ID "cuda.tma.v1-"

/* Large tiles read each operand less often; small ones, and those that share a sum among warps or
 * (s2, s4) among the blocks of a cluster, reach more SMs where there are few pixels; the last is
 * for any. */
#define CS_MMA_TILES(X)                                   \
  X("128x128", 128, 128, Tile<128, 128, 2, 4, 1, 128, 3>) \
  X("128x64", 128, 64, Tile<128, 64, 2, 2, 1, 128, 3>)    \
  X("64x128", 64, 128, Tile<64, 128, 2, 2, 1, 128, 3>)    \
  X("64x64", 64, 64, Tile<64, 64, 2, 1, 2, 128, 3>)       \
  X("64x32", 64, 32, Tile<64, 32, 2, 1, 2, 128, 4>)       \
  X("32x64", 32, 64, Tile<32, 64, 1, 2, 4, 256, 3>)       \
  X("32x32", 32, 32, Tile<32, 32, 1, 1, 4, 256, 4>)       \
  X("64x64s2", 64, 64, Tile<64, 64, 2, 1, 2, 128, 3, 2>)  \
  X("64x64s4", 64, 64, Tile<64, 64, 2, 1, 2, 128, 3, 4>)  \
  X("32x32s2", 32, 32, Tile<32, 32, 1, 1, 4, 256, 4, 2>)  \
  X("32x32s4", 32, 32, Tile<32, 32, 1, 1, 4, 256, 4, 4>)  \
  X("16x32s2", 16, 32, Tile<16, 32, 1, 1, 8, 256, 4, 2>)  \
  X("16x32", 16, 32, Tile<16, 32, 1, 1, 8, 256, 4>)

/* The third number are stages. Large tiles read each operand less often; of small ones several
 * blocks fit on an SM, and one stores while another multiplies; s2, s4: so many share a sum. */
#define CS_TMA_TILES(X)                                  \
  X("192x192x4", 192, 192, TmaTile<192, 192, 4, 3, 1>)   \
  X("128x128x3", 128, 128, TmaTile<128, 128, 3, 2, 2>)   \
  X("128x96x3", 128, 96, TmaTile<128, 96, 3, 2, 2>)      \
  X("128x64x4", 128, 64, TmaTile<128, 64, 4, 2, 2>)      \
  X("128x64x2", 128, 64, TmaTile<128, 64, 2, 2, 3>)      \
  X("128x32x4", 128, 32, TmaTile<128, 32, 4, 2, 2>)      \
  X("64x128x4", 64, 128, TmaTile<64, 128, 4, 1, 2>)      \
  X("64x64x4", 64, 64, TmaTile<64, 64, 4, 1, 3>)         \
  X("128x64x4s2", 128, 64, TmaTile<128, 64, 4, 2, 2, 2>) \
  X("64x64x4s2", 64, 64, TmaTile<64, 64, 4, 1, 3, 2>)    \
  X("64x64x4s4", 64, 64, TmaTile<64, 64, 4, 1, 3, 4>)

/* X(name, pixels, filters, a tile above, tile): for transposed convolutions of many pixels alone,
 * of operations that the tile above is for. How fast shared memory is filled is what bounds those,
 * and the larger a tile is, the less goes there. */
#define CS_TMA_LARGE_TILES(X)                                       \
  X("256x128x4", 256, 128, "128x128x3", TmaTile<256, 128, 4, 2, 1>) \
  X("256x64x4", 256, 64, "128x64x4", TmaTile<256, 64, 4, 2, 1>)     \
  X("256x64x2", 256, 64, "128x64x4", TmaTile<256, 64, 2, 2, 2>)

#endif
