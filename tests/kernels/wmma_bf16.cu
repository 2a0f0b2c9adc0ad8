// 16 x 16 x 16 products of bfloat16 by the warp-matrix interface, column-major right factor.
#include <cuda_bf16.h>
#include <mma.h>
using namespace nvcuda::wmma;
extern "C" __global__ void wmma_bf16(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, int k) {
    fragment<matrix_a, 16, 16, 16, __nv_bfloat16, row_major> fa;
    fragment<matrix_b, 16, 16, 16, __nv_bfloat16, col_major> fb;
    fragment<accumulator, 16, 16, 16, float> fc;
    fill_fragment(fc, 0.5f);
    for (int i = 0; i < k; i += 16) {
        load_matrix_sync(fa, a + i, k);
        load_matrix_sync(fb, b + i, k);
        mma_sync(fc, fa, fb, fc);
    }
    for (int i = 0; i < fc.num_elements; ++i) fc.x[i] *= 2.0f;
    store_matrix_sync(c, fc, 16, mem_row_major);
}
